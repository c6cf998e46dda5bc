// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/comm/support/exact_cases.h"
#include "tests/comm/support/ranks.h"

namespace gradring::comm {
namespace {

/// Worlds from one rank to more ranks than most test machines have cores.
class InProcess : public ::testing::TestWithParam<int> {};

TEST_P(InProcess, AllReduceIsExact) { testing::run_as_threads(GetParam(), testing::check_all_reduce); }
TEST_P(InProcess, ReduceScatterThenAllGatherIsExact) {
  testing::run_as_threads(GetParam(), testing::check_reduce_scatter_and_all_gather);
}
TEST_P(InProcess, BroadcastIsExactFromEveryRoot) { testing::run_as_threads(GetParam(), testing::check_broadcast); }
TEST_P(InProcess, HostHelpersAreExact) { testing::run_as_threads(GetParam(), testing::check_host_helpers); }
TEST_P(InProcess, SumsHaveTheDocumentedOrder) { testing::run_as_threads(GetParam(), testing::check_order_of_sums); }

INSTANTIATE_TEST_SUITE_P(Worlds, InProcess, ::testing::Range(1, 9),
                         [](const auto& test) { return "World" + std::to_string(test.param); });

}  // namespace
}  // namespace gradring::comm
