// SPDX-License-Identifier: Apache-2.0
#include "train/bench/measured_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradring::train::bench {
namespace {

using ::testing::ElementsAre;

TEST(MeasureRounds, LetsTheContestantsAlternate) {
  std::vector<std::string> calls;
  double seconds = 0;
  const auto contestant = [&](const std::string& name) {
    return Contestant{.layout = {.name = name}, .train = [&calls, &seconds, name] {
                        calls.push_back(name);
                        return Measurement{.seconds = ++seconds, .loss = 0.5};
                      }};
  };
  std::vector<std::string> heard;
  const auto rows = measure_rounds(
      {contestant("a"), contestant("b")}, 2, [&](int round, const Contestant& who, const Measurement& measured) {
        heard.push_back(std::to_string(round) + who.layout.name + ":" + std::to_string(int(measured.seconds)));
      });
  EXPECT_THAT(calls, ElementsAre("a", "b", "a", "b"));
  EXPECT_THAT(heard, ElementsAre("0a:1", "0b:2", "1a:3", "1b:4"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].rounds[1].seconds, 3);
  EXPECT_EQ(rows[1].rounds[1].loss, 0.5);
}

}  // namespace
}  // namespace gradring::train::bench
