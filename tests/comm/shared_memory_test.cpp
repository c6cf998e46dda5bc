// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/comm/support/exact_cases.h"
#include "tests/comm/support/ranks.h"

namespace gradring::comm {
namespace {

/// The same cases as in_process_test.cpp, by ranks that are processes.
class SharedMemory : public ::testing::TestWithParam<int> {};

TEST_P(SharedMemory, AllReduceIsExact) { tests::run_as_processes(GetParam(), tests::check_all_reduce); }
TEST_P(SharedMemory, ReduceScatterThenAllGatherIsExact) {
  tests::run_as_processes(GetParam(), tests::check_reduce_scatter_and_all_gather);
}
TEST_P(SharedMemory, BroadcastIsExactFromEveryRoot) { tests::run_as_processes(GetParam(), tests::check_broadcast); }
TEST_P(SharedMemory, HostHelpersAreExact) { tests::run_as_processes(GetParam(), tests::check_host_helpers); }
TEST_P(SharedMemory, SumsHaveTheDocumentedOrder) { tests::run_as_processes(GetParam(), tests::check_order_of_sums); }

INSTANTIATE_TEST_SUITE_P(Worlds, SharedMemory, ::testing::Range(1, 5),
                         [](const auto& test) { return "World" + std::to_string(test.param); });

}  // namespace
}  // namespace gradring::comm
