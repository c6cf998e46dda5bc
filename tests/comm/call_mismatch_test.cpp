// SPDX-License-Identifier: Apache-2.0
// Ranks that make calls which differ in one value: each value must be compared, on every transport.
#include <gmock/gmock.h>

#include <functional>

#include "comm/groups.h"
#include "comm/rendezvous/store.h"
#include "comm/transport/error.h"
#include "tests/comm/support/desync.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/support/ranks.h"

namespace gradring::comm {
namespace {

using kernels::DType;
using tests::RankWorkspace;
using tests::TransportKind;

constexpr std::chrono::seconds kCallTimeout(60);

using Call = std::function<void(ProcessGroup&, RankWorkspace&)>;

/// Ranks that are threads, over each transport between CPUs; without one: in process.
class CallMismatch : public ::testing::TestWithParam<std::optional<TransportKind>> {
 protected:
  static std::vector<std::exception_ptr> errors_of(int world, const std::function<void(ProcessGroup&)>& body) {
    if (!GetParam()) return tests::errors_of_threads(world, body, kCallTimeout);
    MemoryStore store;
    return tests::errors_of_threads(world, body, [&](int rank) {
      return join(*GetParam(), store, {.rank = rank, .world_size = world, .timeout = kCallTimeout});
    });
  }

  /// Two ranks make different calls; both throw a Desync, and the messages contain `one` and `other`.
  static void expect_desync(const Call& first, const Call& second, const std::string& one, const std::string& other) {
    const auto errors = errors_of(2, [&](ProcessGroup& group) {
      RankWorkspace work(group);
      (group.rank() == 0 ? first : second)(group, work);
    });
    tests::expect_all_desync(errors, {one, other});
  }
};

INSTANTIATE_TEST_SUITE_P(Over, CallMismatch,
                         ::testing::Values(std::nullopt, TransportKind::shared_memory, TransportKind::tcp),
                         [](const auto& test) { return test.param ? tests::name_of(*test.param) : "InProcess"; });

TEST_P(CallMismatch, ReportsDifferentRoots) {
  expect_desync([](auto& group, auto& work) { group.broadcast(work.range(100), 0, *work.stream); },
                [](auto& group, auto& work) { group.broadcast(work.range(100), 1, *work.stream); },
                "rank 0 is in broadcast 1 (chain, root 0)", "rank 1 sent data for broadcast 1 (chain, root 1)");
}

/// No two ranks may return without error from a broadcast of which they name different roots, and go on.
TEST_P(CallMismatch, ReportsOneRankWithAnotherRoot) {
  for (const int world : {3, 4, 5})
    for (int other = 0; other < world; ++other) {
      SCOPED_TRACE(::testing::Message() << "rank " << other << " of " << world << " names another root");
      const auto errors = errors_of(world, [&](ProcessGroup& group) {
        RankWorkspace work(group);
        group.broadcast(work.range(100), group.rank() == other ? 0 : 1, *work.stream);
        group.barrier(*work.stream);
      });
      tests::expect_all_desync(errors, {"root 0", "root 1"});
    }
}

TEST_P(CallMismatch, ReportsDifferentRootsOnTheHost) {
  for (const std::size_t length : {0, 200'000})
    expect_desync([&](auto& group, auto&) { group.broadcast_on_host(std::string(length, 'a'), 0); },
                  [&](auto& group, auto&) { group.broadcast_on_host(std::string(length, 'b'), 1); }, "root 0",
                  "root 1");
}

TEST_P(CallMismatch, ReportsDifferentElementCounts) {
  expect_desync([](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream); },
                [](auto& group, auto& work) { group.all_reduce(work.range(101), *work.stream); }, "of 100 f32",
                "of 101 f32");
}

TEST_P(CallMismatch, ReportsDifferentDtypes) {
  expect_desync([](auto& group, auto& work) { group.all_reduce(work.range(100, 0, DType::f16), *work.stream); },
                [](auto& group, auto& work) { group.all_reduce(work.range(100, 0, DType::bf16), *work.stream); },
                "of 100 f16", "of 100 bf16");
}

TEST_P(CallMismatch, ReportsDifferentRanges) {
  expect_desync([](auto& group, auto& work) { group.all_gather(work.range(100, 0), *work.stream); },
                [](auto& group, auto& work) { group.all_gather(work.range(100, 1), *work.stream); }, "from element 0",
                "from element 1");
}

TEST_P(CallMismatch, ReportsDifferentSegments) {
  const auto reduces = [](int which) {
    return [which](ProcessGroup& group, RankWorkspace& work) {
      const auto second = group.allocate(work.segment->size());
      SegmentRange range = work.range(100);
      if (which == 2) range.segment = second.get();
      group.all_reduce(range, *work.stream);
    };
  };
  expect_desync(reduces(1), reduces(2), "of segment 1", "of segment 2");
}

TEST_P(CallMismatch, ReportsDifferentSegmentSizes) {
  expect_desync([](auto& group, auto&) { group.allocate(1024); }, [](auto& group, auto&) { group.allocate(2048); },
                "1024", "2048");
}

TEST_P(CallMismatch, ReportsAnExtraCall) {
  expect_desync(
      [](auto& group, auto& work) {
        group.all_reduce(work.range(10), *work.stream);
        group.barrier(*work.stream);
      },
      [](auto& group, auto& work) { group.barrier(*work.stream); }, "all_reduce 1", "barrier 1");
}

TEST_P(CallMismatch, ReportsDifferentOperations) {
  expect_desync([](auto& group, auto& work) { group.reduce_scatter(work.range(100), *work.stream); },
                [](auto& group, auto& work) { group.all_gather(work.range(100), *work.stream); },
                "reduce_scatter 1 (ring)", "all_gather 1 (ring)");
}

TEST_P(CallMismatch, ReportsHostSumsOfDifferentTypes) {
  double number = 1;
  std::int64_t count = 1;
  expect_desync([&](auto& group, auto&) { group.all_reduce_on_host(std::span(&number, 1)); },
                [&](auto& group, auto&) { group.all_reduce_on_host(std::span(&count, 1)); }, "all_reduce f64 1",
                "all_reduce i64 1");
}

TEST_P(CallMismatch, ReportsAHostSumAgainstAGather) {
  double number = 1;
  const std::vector<std::byte> bytes(sizeof number);
  expect_desync([&](auto& group, auto&) { group.all_reduce_on_host(std::span(&number, 1)); },
                [&](auto& group, auto&) { group.all_gather_on_host(bytes); }, "all_reduce f64 1", "all_gather 1");
}

TEST_P(CallMismatch, ReportsHostGathersOfDifferentLengths) {
  const std::vector<std::byte> bytes(70'000);
  expect_desync([&](auto& group, auto&) { group.all_gather_on_host(bytes); },
                [&](auto& group, auto&) { group.all_gather_on_host(std::span(bytes).first(69'999)); }, "all_gather 3",
                "all_gather 3");
}

/// A transport that cannot expose memory has one algorithm for each operation.
TEST_P(CallMismatch, ReportsDifferentAlgorithms) {
  if (GetParam() == TransportKind::tcp) return;
  expect_desync(
      [](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream, AllReduceAlgorithm::ring); },
      [](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream, AllReduceAlgorithm::direct); },
      "all_reduce 1 (ring)", "all_reduce 1 (direct)");
}

}  // namespace
}  // namespace gradring::comm
