// SPDX-License-Identifier: Apache-2.0
// The NCCL transport on a fake NCCL, with ranks as threads and without a GPU.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <future>
#include <thread>
#include <vector>

#include "comm/transport/error.h"
#include "kernels/base/error.h"
#include "tests/comm/support/exact_cases.h"
#include "tests/comm/support/expect_error.h"
#include "tests/comm/support/patterns.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/support/ranks.h"
#include "tests/comm/transports/nccl/nccl_ranks.h"

namespace gradring::comm {
namespace {

using tests::expect_error;
using tests::NcclRanks;

void run(int world, const std::function<void(ProcessGroup&)>& body, bool captured = false) {
  NcclRanks ranks(world);
  ranks.captured = captured;
  ranks.run(body);
}

struct Case {
  int world = 1;
  bool captured = false;
};

std::string name_of(const ::testing::TestParamInfo<Case>& test) {
  return fmt::format("World{}{}", test.param.world, test.param.captured ? "Captured" : "");
}

class Nccl : public ::testing::TestWithParam<Case> {
 protected:
  static void run(const std::function<void(ProcessGroup&)>& body) {
    comm::run(GetParam().world, body, GetParam().captured);
  }
};

TEST_P(Nccl, AllReduceIsExact) { run(tests::check_all_reduce); }
TEST_P(Nccl, ReduceScatterThenAllGatherIsExact) { run(tests::check_reduce_scatter_and_all_gather); }
TEST_P(Nccl, BroadcastIsExactFromEveryRoot) { run(tests::check_broadcast); }
TEST_P(Nccl, HostHelpersAreExact) { run(tests::check_host_helpers); }
TEST_P(Nccl, SumsHaveTheDocumentedOrder) { run(tests::check_order_of_sums); }

INSTANTIATE_TEST_SUITE_P(Worlds, Nccl,
                         ::testing::Values(Case{1}, Case{2}, Case{3}, Case{5}, Case{1, true}, Case{2, true},
                                           Case{3, true}),
                         name_of);

/// Every number of GPUs of one host, with one size.
class NcclSizes : public ::testing::TestWithParam<Case> {};

TEST_P(NcclSizes, SumsOfEveryTypeAndAlgorithmAreExact) {
  const auto& [world, captured] = GetParam();
  run(
      world,
      [world = world](ProcessGroup& group) {
        tests::RankWorkspace work(group);
        for (const kernels::DType dtype : {kernels::DType::f32, kernels::DType::f16, kernels::DType::bf16})
          for (const auto algorithm : {AllReduceAlgorithm::ring, AllReduceAlgorithm::nccl}) {
            for (std::size_t i = 0; i < 1000; ++i)
              tests::store(work.segment->data(), dtype, i, static_cast<float>(tests::whole_number(group.rank(), i)));
            group.all_reduce(work.range(1000, 0, dtype), *work.stream, algorithm);
            for (std::size_t i = 0; i < 1000; ++i)
              tests::require(tests::load(work.segment->data(), dtype, i) == tests::sum_of_whole_numbers(world, i),
                             "a sum is wrong");
          }
      },
      captured);
}

INSTANTIATE_TEST_SUITE_P(Worlds, NcclSizes,
                         ::testing::Values(Case{2}, Case{4}, Case{6}, Case{7}, Case{8}, Case{2, true}, Case{4, true},
                                           Case{6, true}, Case{7, true}, Case{8, true}),
                         name_of);

TEST(NcclTransport, RunsManyCollectivesWithoutHostWaits) {
  constexpr int kWorld = 3;
  constexpr int kRounds = 20;
  constexpr std::size_t kElements = 5000;
  NcclRanks ranks(kWorld);
  const auto errors = tests::errors_of_threads(
      kWorld,
      [&](ProcessGroup& group) {
        const auto stream = ranks.device(group.rank()).make_stream(kernels::StreamMode::asynchronous);
        const auto segment = group.allocate(kElements * sizeof(float));
        for (std::size_t i = 0; i < kElements; ++i) segment->as<float>()[i] = 1;
        for (int round = 0; round < kRounds; ++round)
          group.all_reduce({.segment = segment.get(), .slice = {0, kElements}}, *stream);
        group.barrier(*stream);
        stream->synchronize(Deadline::after(std::chrono::seconds(60)));
        group.throw_if_failed();
        float expected = 1;
        for (int round = 0; round < kRounds; ++round) expected *= kWorld;
        for (std::size_t i = 0; i < kElements; ++i)
          tests::require(segment->as<float>()[i] == expected, "a sum is wrong");
      },
      [&](int rank) { return ranks.join_on_callers_streams(rank); });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

TEST(NcclTransport, ReplaysAGraphWithoutCallingNccl) {
  constexpr int kWorld = 3;
  NcclRanks ranks(kWorld);
  const auto errors = tests::errors_of_threads(
      kWorld,
      [&](ProcessGroup& group) {
        const Deadline deadline = Deadline::after(std::chrono::seconds(60));
        tests::FakeGpu& gpu = ranks.device(group.rank());
        const auto stream = gpu.make_stream(kernels::StreamMode::asynchronous);
        const auto segment = group.allocate(1000 * sizeof(float));
        for (std::size_t i = 0; i < 1000; ++i) segment->as<float>()[i] = 1;
        const auto graph = gpu.record(*stream, [&] {
          group.all_reduce({.segment = segment.get(), .slice = {0, 1000}}, *stream);
        });
        group.barrier_on_host();
        const std::size_t groups = ranks.fake().groups();
        tests::require(segment->as<float>()[999] == 1, "a capture ran");
        for (int replay = 0; replay < 3; ++replay) group.replay(*stream, [&] { graph->enqueue(*stream); });
        stream->synchronize(deadline);
        group.throw_if_failed();
        for (std::size_t i = 0; i < 1000; ++i) tests::require(segment->as<float>()[i] == 27, "a sum is wrong");
        tests::require(ranks.fake().groups() == groups, "a replay called NCCL");
      },
      [&](int rank) { return ranks.join_on_callers_streams(rank); });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

TEST(NcclTransport, SplitsLongMovesIntoSlices) {
  NcclRanks ranks(2);
  std::size_t short_groups = 0;
  ranks.run([&](ProcessGroup& group) {
    tests::RankWorkspace work(group);
    group.all_reduce(work.range(100), *work.stream);
    group.barrier_on_host();
    if (group.rank() == 0) short_groups = ranks.fake().groups();
    group.barrier_on_host();
    group.all_reduce(work.range(1000), *work.stream);
  });
  EXPECT_EQ(short_groups, 4u) << "two steps on each of two ranks";
  EXPECT_EQ(ranks.fake().groups() - short_groups, 8u) << "the same in two slices";
}

/// Every rank exchanges slices with all others in one step, and adds what it receives.
class NcclStepOfManyPeers : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t kElements = 300;  // of a slice: two transfers

  /// The moves of two steps.
  static void post(Transport& transport, Segment& segment) {
    const auto world = static_cast<std::size_t>(transport.world_size());
    const auto slice = [&](int from, int to) {
      return Slice{(static_cast<std::size_t>(from) * world + static_cast<std::size_t>(to)) * kElements, kElements};
    };
    Step step{.range = {.segment = &segment, .slice = {0, world * world * kElements}}, .operation = "test"};
    for (int peer = 0; peer < transport.world_size(); ++peer) {
      if (peer == transport.rank()) continue;
      step.moves.push_back({Move::Kind::receive_add, peer, slice(peer, transport.rank())});
      step.moves.push_back({Move::Kind::send, peer, slice(transport.rank(), peer)});
    }
    for (step.index = 0; step.index < 2; ++step.index) transport.enqueue(step);
  }

  static void run_rank(NcclRanks& ranks, int rank) {
    const auto& [world, captured] = GetParam();
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    const auto stream = ranks.device(rank).make_stream(kernels::StreamMode::asynchronous);
    const auto transport = ranks.transport(rank);
    const std::size_t elements = static_cast<std::size_t>(world * world) * kElements;
    const auto segment = transport->allocate(elements * sizeof(float), deadline);
    const auto data = segment->as<float>();
    for (std::size_t i = 0; i < elements; ++i) data[i] = static_cast<float>(tests::whole_number(rank, i));
    const auto submit = [&] { transport->submit(*stream, [&] { post(*transport, *segment); }); };
    std::unique_ptr<kernels::Recording> graph;
    if (captured) graph = ranks.device(rank).record(*stream, submit);
    captured ? transport->replay(*stream, [&] { graph->enqueue(*stream); }) : submit();
    stream->synchronize(deadline);
    transport->throw_if_failed();
    for (std::size_t i = 0; i < elements; ++i) {
      const std::size_t slice = i / kElements;
      const int from = static_cast<int>(slice) / world, to = static_cast<int>(slice) % world;
      const auto received = to == rank && from != rank ? 2 * tests::whole_number(from, i) : 0;
      tests::require(data[i] == static_cast<float>(tests::whole_number(rank, i) + received), "a sum is wrong");
    }
  }
};

TEST_P(NcclStepOfManyPeers, AddsExactly) {
  NcclRanks ranks(GetParam().world);
  std::vector<std::future<void>> running;
  for (int rank = 0; rank < GetParam().world; ++rank)
    running.push_back(std::async(std::launch::async, [&ranks, rank] { run_rank(ranks, rank); }));
  for (std::future<void>& rank : running) rank.get();
}

INSTANTIATE_TEST_SUITE_P(Worlds, NcclStepOfManyPeers,
                         ::testing::Values(Case{5}, Case{6}, Case{9}, Case{10}, Case{6, true}, Case{10, true}),
                         name_of);

TEST(NcclTransport, RunsNcclAllReduceOfAwkwardSizes) {
  run(3, [](ProcessGroup& group) {
    tests::RankWorkspace work(group);
    for (const std::size_t elements : {0, 1, 33, 500}) {
      for (std::size_t i = 0; i < elements; ++i)
        work.segment->as<float>()[i] = static_cast<float>(tests::whole_number(group.rank(), i));
      group.all_reduce(work.range(elements), *work.stream, AllReduceAlgorithm::nccl);
      for (std::size_t i = 0; i < elements; ++i)
        tests::require(work.segment->as<float>()[i] == static_cast<float>(tests::sum_of_whole_numbers(3, i)),
                       "NCCL's sum is wrong");
    }
  });
}

TEST(NcclTransport, RejectsNcclAllReduceOnOtherTransports) {
  tests::run_as_threads(1, [](ProcessGroup& group) {
    tests::RankWorkspace work(group);
    EXPECT_THROW(group.all_reduce(work.range(), *work.stream, AllReduceAlgorithm::nccl), InvalidArgument);
  });
}

TEST(NcclTransport, RejectsInvalidReductions) {
  run(2, [](ProcessGroup& group) {
    tests::RankWorkspace work(group);
    EXPECT_THROW(group.all_reduce(work.range(10, 0, kernels::DType::u8), *work.stream), InvalidArgument);
    EXPECT_THROW(group.all_reduce(work.range(1001), *work.stream), InvalidArgument);
    group.all_reduce(work.range(), *work.stream);  // the group still works
  });
}

TEST(NcclTransport, RejectsTwoMessagesOfAPair) {
  NcclRanks ranks(2);
  const std::jthread other([&] { ranks.transport(1); });
  const std::unique_ptr<Transport> transport = ranks.transport(0);
  const std::vector<Move> moves(2, {Move::Kind::send, 1, {}});
  EXPECT_THROW(transport->enqueue({.moves = moves, .operation = "test"}), InvalidArgument);
}

TEST(NcclTransport, MonitorsCapturedWorkOnlyOnReplay) {
  constexpr std::chrono::milliseconds kShort(1000);
  NcclRanks ranks(2, kShort);
  ranks.adjust = [&](int, nccl::Dependencies& dependencies) {
    dependencies.abort_timeout = kShort / 10;  // the rank that leaves does not wait for the other
  };
  const auto errors = tests::errors_of_threads(
      2,
      [&](ProcessGroup& group) {
        const auto stream = ranks.device(group.rank()).make_stream(kernels::StreamMode::asynchronous);
        group.barrier(*stream);  // connects the ranks
        const auto graph = ranks.device(group.rank()).record(*stream, [&] { group.barrier(*stream); });
        stream->synchronize(Deadline::after(std::chrono::seconds(60)));
        if (group.rank() == 1) return;
        std::this_thread::sleep_for(2 * kShort);
        EXPECT_NO_THROW(group.throw_if_failed());
        group.replay(*stream, [&] { graph->enqueue(*stream); });
        stream->synchronize(Deadline::after(std::chrono::seconds(60)));
        group.throw_if_failed();
      },
      [&](int rank) { return ranks.join_on_callers_streams(rank); });
  expect_error<PeerLost>(errors[0]);
  EXPECT_FALSE(errors[1]);
}

}  // namespace
}  // namespace gradring::comm
