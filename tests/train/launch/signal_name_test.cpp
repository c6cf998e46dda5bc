// SPDX-License-Identifier: Apache-2.0
#include "train/launch/signal_name.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace gradring::train {
namespace {

TEST(SignalName, IsTheKernels) {
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(63), "signal 63");
}

TEST(SignalName, OfThoseThatStopARunIsUnderstood) {
  EXPECT_EQ(stopping_signal("SIGTERM"), SIGTERM);
  EXPECT_EQ(stopping_signal("SIGQUIT"), SIGQUIT);
  EXPECT_EQ(stopping_signal("SIGUSR1"), SIGUSR1) << "as torchrun's --signals-to-handle takes it";
  for (const char* name : {"", "TERM", "sigterm", "SIGKILL", "SIGSTOP", "15"})
    EXPECT_EQ(stopping_signal(name), 0) << name;
}

TEST(ExitCodeAfter, IsThatOfSigtermForAHangup) {
  EXPECT_EQ(exit_code_after(SIGINT), 130);
  EXPECT_EQ(exit_code_after(SIGQUIT), 131);
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) EXPECT_EQ(exit_code_after(signal), 143) << signal;
}

}  // namespace
}  // namespace gradring::train
