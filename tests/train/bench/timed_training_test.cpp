// SPDX-License-Identifier: Apache-2.0
#include "train/bench/timed_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradring::train::bench {
namespace {

using ::testing::ElementsAre;

TEST(TrainInTurns, LetsTheContendersAlternate) {
  std::vector<std::string> calls;
  double seconds = 0;
  const auto contender = [&](const std::string& name) {
    return Contender{name, [&calls, &seconds, name] {
                       calls.push_back(name);
                       return TrainingTime{.seconds = ++seconds, .processor_seconds = 0, .loss = 0.5};
                     }};
  };
  std::vector<std::string> heard;
  const auto times =
      train_in_turns({contender("a"), contender("b")}, 2, [&](int round, std::size_t who, TrainingTime time) {
        heard.push_back(std::to_string(round) + std::to_string(who) + ":" + std::to_string(int(time.seconds)));
      });
  EXPECT_THAT(calls, ElementsAre("a", "b", "a", "b"));
  EXPECT_THAT(heard, ElementsAre("00:1", "01:2", "10:3", "11:4"));
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[1][0].seconds, 3);
  EXPECT_EQ(times[1][1].loss, 0.5);
}

}  // namespace
}  // namespace gradring::train::bench
