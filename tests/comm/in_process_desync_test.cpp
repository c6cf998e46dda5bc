// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "comm/error.h"
#include "tests/comm/support/desync.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/support/ranks.h"

namespace gradring::comm {
namespace {

using kernels::DType;
using tests::RankWorkspace;

constexpr std::chrono::seconds kDesyncTimeout(60);

/// Runs two ranks that make different calls; expects a Desync on both, with messages that contain `one` and `other`.
void expect_desync_in_process(const std::function<void(ProcessGroup&, RankWorkspace&)>& first,
                              const std::function<void(ProcessGroup&, RankWorkspace&)>& second, const std::string& one,
                              const std::string& other) {
  const auto errors = tests::errors_of_threads(
      2,
      [&](ProcessGroup& group) {
        RankWorkspace work(group);
        (group.rank() == 0 ? first : second)(group, work);
        group.barrier(*work.stream);
      },
      kDesyncTimeout);
  tests::expect_all_desync(errors, {one, other});
}

TEST(InProcessDesync, ReportsDifferentElementCounts) {
  expect_desync_in_process([](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream); },
                           [](auto& group, auto& work) { group.all_reduce(work.range(101), *work.stream); },
                           "of 100 f32", "of 101 f32");
}

TEST(InProcessDesync, ReportsDifferentDtypes) {
  expect_desync_in_process(
      [](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream); },
      [](auto& group, auto& work) { group.all_reduce(work.range(100, 0, DType::i32), *work.stream); }, "of 100 f32",
      "of 100 i32");
}

TEST(InProcessDesync, ReportsDifferentRanges) {
  expect_desync_in_process([](auto& group, auto& work) { group.all_reduce(work.range(100, 0), *work.stream); },
                           [](auto& group, auto& work) { group.all_reduce(work.range(100, 100), *work.stream); },
                           "from element 0", "from element 100");
}

TEST(InProcessDesync, ReportsDifferentOperations) {
  expect_desync_in_process([](auto& group, auto& work) { group.reduce_scatter(work.range(100), *work.stream); },
                           [](auto& group, auto& work) { group.all_gather(work.range(100), *work.stream); },
                           "reduce_scatter", "all_gather");
}

TEST(InProcessDesync, ReportsAnExtraCall) {
  expect_desync_in_process([](auto& group, auto& work) { group.all_reduce(work.range(10), *work.stream); },
                           [](auto&, auto&) {}, "all_reduce 1", "barrier 1");
}

TEST(InProcessDesync, ReportsDifferentAlgorithms) {
  expect_desync_in_process(
      [](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream, AllReduceAlgorithm::ring); },
      [](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream, AllReduceAlgorithm::direct); },
      "50 of 100 f32 exposed", "50 of 100 f32 ");
}

TEST(InProcessDesync, ReportsDifferentSegmentSizes) {
  expect_desync_in_process([](auto& group, auto&) { group.allocate(1024); },
                           [](auto& group, auto&) { group.allocate(2048); }, "1024", "2048");
}

}  // namespace
}  // namespace gradring::comm
