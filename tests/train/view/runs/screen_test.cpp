// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/screen.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/no_more_files.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

bool is_blocked(int signal) {
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return ::sigismember(&blocked, signal) == 1;
}

TEST(Screen, BlocksNoSignalsThatItCannotReceive) {
  {
    const tests::NoMoreFiles limit;
    EXPECT_THROW(Screen(-1, -1, false), EnvironmentError);
  }
  EXPECT_FALSE(is_blocked(SIGINT));
  EXPECT_FALSE(is_blocked(SIGTERM));
}

}  // namespace
}  // namespace gradring::train
