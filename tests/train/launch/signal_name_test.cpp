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
  for (const char* name : {"", "TERM", "sigterm", "SIGKILL", "SIGUSR1", "15"})
    EXPECT_EQ(stopping_signal(name), 0) << name;
}

}  // namespace
}  // namespace gradring::train
