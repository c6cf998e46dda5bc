// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/comm/support/exact_cases.h"
#include "tests/comm/support/ranks.h"

namespace gradring::comm {
namespace {

using tests::TransportKind;

/// The cases of in_process_test.cpp with ranks as processes.
class Processes : public ::testing::TestWithParam<std::tuple<TransportKind, int>> {
 protected:
  static void run(void (*check)(ProcessGroup&)) {
    const auto [medium, world] = GetParam();
    tests::run_as_processes(world, check, medium);
  }
};

TEST_P(Processes, AllReduceIsExact) { run(tests::check_all_reduce); }
TEST_P(Processes, ReduceScatterThenAllGatherIsExact) { run(tests::check_reduce_scatter_and_all_gather); }
TEST_P(Processes, BroadcastIsExactFromEveryRoot) { run(tests::check_broadcast); }
TEST_P(Processes, HostHelpersAreExact) { run(tests::check_host_helpers); }
TEST_P(Processes, SumsHaveTheDocumentedOrder) { run(tests::check_order_of_sums); }

INSTANTIATE_TEST_SUITE_P(Worlds, Processes,
                         ::testing::Combine(::testing::Values(TransportKind::shared_memory, TransportKind::tcp),
                                            ::testing::Range(1, 5)),
                         [](const auto& test) {
                           return tests::name_of(std::get<0>(test.param)) + "World" +
                                  std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace gradring::comm
