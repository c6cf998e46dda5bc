// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "comm/error.h"
#include "tests/comm/support/desync.h"
#include "tests/comm/support/ranks.h"
#include "tests/comm/support/workplace.h"

namespace gradring::comm {
namespace {

using kernels::DType;
using tests::Workplace;

constexpr std::chrono::seconds kLong(60);

/// Runs two ranks that do different things, and expects that both report a Desync, and that one's text has both words.
void expect_desync(const std::function<void(ProcessGroup&, Workplace&)>& first,
                   const std::function<void(ProcessGroup&, Workplace&)>& second, const std::string& one,
                   const std::string& other) {
  const auto errors = tests::errors_of_threads(
      2,
      [&](ProcessGroup& group) {
        Workplace work(group);
        (group.rank() == 0 ? first : second)(group, work);
        group.barrier(*work.stream);
      },
      kLong);
  tests::expect_all_desync(errors, {one, other});
}

TEST(InProcessDesync, AnotherElementCountIsReported) {
  expect_desync([](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream); },
                [](auto& group, auto& work) { group.all_reduce(work.range(101), *work.stream); }, "of 100 f32",
                "of 101 f32");
}

TEST(InProcessDesync, AnotherTypeIsReported) {
  expect_desync([](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream); },
                [](auto& group, auto& work) { group.all_reduce(work.range(100, 0, DType::i32), *work.stream); },
                "of 100 f32", "of 100 i32");
}

TEST(InProcessDesync, AnotherBucketIsReported) {
  expect_desync([](auto& group, auto& work) { group.all_reduce(work.range(100, 0), *work.stream); },
                [](auto& group, auto& work) { group.all_reduce(work.range(100, 100), *work.stream); }, "from element 0",
                "from element 100");
}

TEST(InProcessDesync, AnotherOperationIsReported) {
  expect_desync([](auto& group, auto& work) { group.reduce_scatter(work.range(100), *work.stream); },
                [](auto& group, auto& work) { group.all_gather(work.range(100), *work.stream); }, "reduce_scatter",
                "all_gather");
}

TEST(InProcessDesync, OneCallTooManyIsReported) {
  expect_desync([](auto& group, auto& work) { group.all_reduce(work.range(10), *work.stream); }, [](auto&, auto&) {},
                "all_reduce 1", "barrier 1");
}

TEST(InProcessDesync, AnotherAlgorithmIsReported) {
  expect_desync(
      [](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream, AllReduceAlgorithm::ring); },
      [](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream, AllReduceAlgorithm::direct); },
      "50 of 100 f32 lent", "50 of 100 f32 ");
}

TEST(InProcessDesync, AnotherSegmentSizeIsReported) {
  expect_desync([](auto& group, auto&) { group.allocate(1024); }, [](auto& group, auto&) { group.allocate(2048); },
                "1024", "2048");
}

}  // namespace
}  // namespace gradring::comm
