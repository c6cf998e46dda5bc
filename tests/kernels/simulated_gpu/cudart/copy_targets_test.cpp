// SPDX-License-Identifier: Apache-2.0
// The handler of SIGSEGV that protects the targets of copies: faults elsewhere are not its own.
#include "kernels/simulated_gpu/cudart/copy_targets.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace gradring::simulated_gpu {
namespace {

constexpr int kHandledBefore = 7;

void use_null_pointer() {
  const CopyTargets targets([](const CopyTargets::Target&) {});
  int* volatile const null = nullptr;
  *static_cast<volatile int*>(null) = 1;
}

/// In processes of their own, as the handler stays.
class CopyTargetsDeathTest : public testing::Test {
 protected:
  CopyTargetsDeathTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(CopyTargetsDeathTest, LeavesOtherFaultsToTheHandlerBefore) {
  EXPECT_EXIT(
      {
        (void)std::signal(SIGSEGV, [](int) { std::_Exit(kHandledBefore); });
        use_null_pointer();
      },
      testing::ExitedWithCode(kHandledBefore), "");
}

TEST_F(CopyTargetsDeathTest, EndsTheProcessWithoutAHandlerBefore) {
  EXPECT_EXIT(
      {
        (void)std::signal(SIGSEGV, SIG_DFL);
        use_null_pointer();
      },
      testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace gradring::simulated_gpu
