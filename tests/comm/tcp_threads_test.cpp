// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads connected by sockets, so that sanitizers see all ranks.
#include <gtest/gtest.h>

#include <functional>

#include "comm/rendezvous/store.h"
#include "comm/transport/error.h"
#include "tests/comm/support/desync.h"
#include "tests/comm/support/exact_cases.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/support/ranks.h"

namespace gradring::comm {
namespace {

using kernels::DType;
using tests::RankWorkspace;

std::vector<std::exception_ptr> errors_of_ranks(int world, const std::function<void(ProcessGroup&)>& body) {
  MemoryStore store;
  return tests::errors_of_threads(world, body, [&](int rank) {
    return join(tests::TransportKind::tcp, store, {.rank = rank, .world_size = world});
  });
}

void run(int world, const std::function<void(ProcessGroup&)>& body) {
  for (const std::exception_ptr& error : errors_of_ranks(world, body))
    if (error) std::rethrow_exception(error);
}

class TcpThreads : public ::testing::TestWithParam<int> {};

TEST_P(TcpThreads, AllReduceIsExact) { run(GetParam(), tests::check_all_reduce); }
TEST_P(TcpThreads, ReduceScatterThenAllGatherIsExact) { run(GetParam(), tests::check_reduce_scatter_and_all_gather); }
TEST_P(TcpThreads, BroadcastIsExactFromEveryRoot) { run(GetParam(), tests::check_broadcast); }
TEST_P(TcpThreads, HostHelpersAreExact) { run(GetParam(), tests::check_host_helpers); }
TEST_P(TcpThreads, SumsHaveTheDocumentedOrder) { run(GetParam(), tests::check_order_of_sums); }

INSTANTIATE_TEST_SUITE_P(Worlds, TcpThreads, ::testing::Values(2, 3, 6),
                         [](const auto& test) { return "World" + std::to_string(test.param); });

TEST(TcpThreads, SendsMoreThanTheSocketBuffersHold) {
  // The root posts all chunks of a broadcast, more than the socket buffers hold, before its peer reads one.
  constexpr std::size_t kElements = 24u << 20;
  run(2, [](ProcessGroup& group) {
    kernels::HostDevice device;
    const auto stream = device.make_stream(kernels::StreamMode::in_place);
    const auto segment = group.allocate(kElements);
    auto* const bytes = segment->as<std::uint8_t>();
    if (group.rank() == 0)
      for (std::size_t i = 0; i < kElements; ++i) bytes[i] = static_cast<std::uint8_t>(i * 2654435761u >> 24);
    group.broadcast({.segment = segment.get(), .slice = {0, kElements}, .dtype = DType::u8}, 0, *stream);
    for (std::size_t i = 0; i < kElements; ++i)
      tests::require(bytes[i] == static_cast<std::uint8_t>(i * 2654435761u >> 24), "a byte is wrong");
  });
}

TEST(TcpDesync, ReportsAnAllocationAgainstACollective) {
  const auto errors = errors_of_ranks(2, [](ProcessGroup& group) {
    RankWorkspace work(group);
    if (group.rank() == 0)
      group.allocate(1024);
    else
      group.all_reduce(work.range(10), *work.stream);
  });
  tests::expect_all_desync(errors, {"allocates", "all_reduce 1"});
}

TEST(TcpDesync, ThrowsAgainAfterAFailure) {
  errors_of_ranks(2, [](ProcessGroup& group) {
    RankWorkspace work(group);
    EXPECT_THROW(group.all_reduce(work.range(100 + static_cast<std::size_t>(group.rank())), *work.stream), Desync);
    EXPECT_THROW(group.all_reduce(work.range(100), *work.stream), Desync);
    EXPECT_THROW(group.allocate(8), Desync);
  });
}

TEST(TcpThreads, AThrowingRankFailsAllOthers) {
  const auto errors = errors_of_ranks(4, [](ProcessGroup& group) {
    RankWorkspace work(group);
    group.all_reduce(work.range(), *work.stream);
    if (group.rank() == 2) throw std::runtime_error("a planted error");
    group.all_reduce(work.range(), *work.stream);
    group.barrier(*work.stream);
  });
  for (const std::size_t rank : {0, 1, 3}) {
    ASSERT_TRUE(errors[rank]);
    try {
      std::rethrow_exception(errors[rank]);
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.peer(), 2) << lost.what();
    }
  }
}

}  // namespace
}  // namespace gradring::comm
