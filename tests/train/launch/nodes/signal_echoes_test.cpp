// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/signal_echoes.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace gradring::train {
namespace {

using namespace std::chrono_literals;

const SignalEchoes::Clock::time_point kBegin{};

TEST(SignalEchoes, OneCtrlCAtAllAgentsIsOne) {
  SignalEchoes echoes;
  EXPECT_TRUE(echoes.is_new(SIGINT, 1, kBegin));
  EXPECT_FALSE(echoes.is_new(SIGINT, 0, kBegin + 3ms));
  EXPECT_FALSE(echoes.is_new(SIGINT, 2, kBegin + 900ms));
}

TEST(SignalEchoes, TheSecondAtAnyAgentIsASecond) {
  SignalEchoes echoes;
  EXPECT_TRUE(echoes.is_new(SIGINT, 1, kBegin));
  EXPECT_FALSE(echoes.is_new(SIGINT, 0, kBegin + 1ms));
  EXPECT_TRUE(echoes.is_new(SIGINT, 0, kBegin + 500ms));
  EXPECT_FALSE(echoes.is_new(SIGINT, 1, kBegin + 501ms));
}

TEST(SignalEchoes, AnotherAgentsOfLaterIsMeant) {
  SignalEchoes echoes;
  EXPECT_TRUE(echoes.is_new(SIGUSR2, 0, kBegin));
  EXPECT_TRUE(echoes.is_new(SIGUSR2, 1, kBegin + 3s));
}

TEST(SignalEchoes, EachSignalIsByItself) {
  SignalEchoes echoes;
  EXPECT_TRUE(echoes.is_new(SIGTERM, 0, kBegin));
  EXPECT_TRUE(echoes.is_new(SIGINT, 1, kBegin));
}

}  // namespace
}  // namespace gradring::train
