// SPDX-License-Identifier: Apache-2.0
// gradring bench layouts, by the program that was built: a few steps by every layout of one rank and two.
#include <gmock/gmock.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/train/cli/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(BenchLayouts, ShowsThatAllOfThemTrainAlike) {
  const tests::Workplace place;
  tests::RunningProgram program(
      place.gradring({"bench", "layouts", "--ranks", "2", "--steps", "8", "-J", "table.json"}));
  const auto end = program.wait(std::chrono::minutes(9));  // 160 trainings
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("80 layouts, 0 differ"));
  EXPECT_THAT(end.out, Not(HasSubstr("DIFFERS")));
  const auto table = nlohmann::json::parse(tests::text_of(place.path("table.json")));
  EXPECT_EQ(table.at("benchmark"), "layouts");
  EXPECT_EQ(table.at("tables").size(), 3);
  EXPECT_EQ(table.at("tables").at("--reproducible, FP16").size(), 16);
}

TEST(BenchLayouts, RefusesWhatIsNoTable) {
  const tests::Workplace place;
  EXPECT_EQ(place.run({"bench", "layouts", "--steps", "1"}).code, 2);
  EXPECT_EQ(place.run({"bench", "layouts", "--ranks", "0"}).code, 2);
  EXPECT_EQ(place.run({"bench", "layouts", "--ranks", "5"}).code, 2);
}

}  // namespace
}  // namespace gradring
