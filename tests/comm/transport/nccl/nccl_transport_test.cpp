// SPDX-License-Identifier: Apache-2.0
// The NCCL transport on a fake NCCL, with ranks as threads and without a GPU.
#include <gmock/gmock.h>

#include <thread>

#include "comm/error.h"
#include "kernels/runtime/error.h"
#include "tests/comm/support/exact_cases.h"
#include "tests/comm/support/patterns.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/support/ranks.h"
#include "tests/comm/transport/nccl/nccl_ranks.h"

namespace gradring::comm {
namespace {

using ::testing::IsEmpty;
using tests::NcclRanks;

void run(int world, const std::function<void(ProcessGroup&)>& body) {
  NcclRanks ranks(world);
  ranks.run(body);
  EXPECT_THAT(ranks.fake().misuse(), IsEmpty());
}

class Nccl : public ::testing::TestWithParam<int> {};

TEST_P(Nccl, AllReduceIsExact) { run(GetParam(), tests::check_all_reduce); }
TEST_P(Nccl, ReduceScatterThenAllGatherIsExact) { run(GetParam(), tests::check_reduce_scatter_and_all_gather); }
TEST_P(Nccl, BroadcastIsExactFromEveryRoot) { run(GetParam(), tests::check_broadcast); }
TEST_P(Nccl, HostHelpersAreExact) { run(GetParam(), tests::check_host_helpers); }
TEST_P(Nccl, SumsHaveTheDocumentedOrder) { run(GetParam(), tests::check_order_of_sums); }

INSTANTIATE_TEST_SUITE_P(Worlds, Nccl, ::testing::Values(1, 2, 3, 5),
                         [](const auto& test) { return "World" + std::to_string(test.param); });

TEST(NcclTransport, RunsManyCollectivesWithoutHostWaits) {
  constexpr int kWorld = 3;
  constexpr int kRounds = 20;
  constexpr std::size_t kElements = 5000;
  NcclRanks ranks(kWorld);
  const auto errors = tests::errors_of_threads(
      kWorld,
      [&](ProcessGroup& group) {
        const auto stream = ranks.device().make_stream(kernels::StreamMode::asynchronous);
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
  EXPECT_THAT(ranks.fake().misuse(), IsEmpty());
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

TEST(NcclTransport, RunsNcclAllReduce) {
  run(3, [](ProcessGroup& group) {
    tests::RankWorkspace work(group);
    for (const kernels::DType dtype : {kernels::DType::f32, kernels::DType::bf16})
      for (const std::size_t elements : {0, 1, 33, 500}) {
        for (std::size_t i = 0; i < elements; ++i)
          tests::store(work.segment->data(), dtype, i, static_cast<float>(tests::whole_number(group.rank(), i)));
        group.all_reduce(work.range(elements, 0, dtype), *work.stream, AllReduceAlgorithm::nccl);
        for (std::size_t i = 0; i < elements; ++i)
          tests::require(tests::load(work.segment->data(), dtype, i) == tests::sum_of_whole_numbers(3, i),
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

TEST(NcclTransport, MonitorsCapturedWorkOnlyOnReplay) {
  constexpr std::chrono::milliseconds kShort(1000);
  NcclRanks ranks(2, kShort);
  const auto captured = ranks.device().make_stream(kernels::StreamMode::asynchronous);
  const auto stream = ranks.device().make_stream(kernels::StreamMode::asynchronous);
  const auto barrier_passed = ranks.device().make_event();
  std::thread other([&] { ranks.join_on_callers_streams(1); });  // joins and leaves
  const auto group = ranks.join_on_callers_streams(0);
  other.join();
  ranks.captured = true;
  group->barrier(*captured);  // runs at once, unlike captured work, and waits for the rank that has left
  captured->record(*barrier_passed);
  std::this_thread::sleep_for(2 * kShort);
  EXPECT_NO_THROW(group->throw_if_failed());
  group->replay(*stream, [&] { stream->enqueue_wait(*barrier_passed); });
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) {
          std::this_thread::sleep_for(kShort / 10);
          group->throw_if_failed();
        }
      },
      PeerLost);
}

}  // namespace
}  // namespace gradring::comm
