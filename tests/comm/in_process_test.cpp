// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/comm/support/exact_cases.h"
#include "tests/comm/support/ranks.h"

namespace gradring::comm {
namespace {

/// Worlds from one rank to more ranks than most test machines have cores.
class InProcess : public ::testing::TestWithParam<int> {};

TEST_P(InProcess, AllReduceIsExact) { tests::run_as_threads(GetParam(), tests::check_all_reduce); }
TEST_P(InProcess, ReduceScatterThenAllGatherIsExact) {
  tests::run_as_threads(GetParam(), tests::check_reduce_scatter_and_all_gather);
}
TEST_P(InProcess, BroadcastIsExactFromEveryRoot) { tests::run_as_threads(GetParam(), tests::check_broadcast); }
TEST_P(InProcess, HostHelpersAreExact) { tests::run_as_threads(GetParam(), tests::check_host_helpers); }
TEST_P(InProcess, SumsHaveTheDocumentedOrder) { tests::run_as_threads(GetParam(), tests::check_order_of_sums); }

INSTANTIATE_TEST_SUITE_P(Worlds, InProcess, ::testing::Range(1, 9),
                         [](const auto& test) { return "World" + std::to_string(test.param); });

}  // namespace
}  // namespace gradring::comm
