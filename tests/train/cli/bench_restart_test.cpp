// SPDX-License-Identifier: Apache-2.0
// gradring bench restart, by the program that was built. How long it takes is not asked here.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/train/cli/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

TEST(BenchRestart, KillsRanksAndTellsHowLongItTookToGoOn) {
  const tests::Workplace place;
  const auto end = place.run({"bench", "restart", "--ranks", "2", "--rounds", "2", "--seed", "3", "-J", "table.json"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, testing::HasSubstr("2 ranks, 2 crashes, seed 3"));
  const auto table = nlohmann::json::parse(tests::text_of(place.path("table.json")));
  EXPECT_EQ(table.at("benchmark"), "restart");
  EXPECT_EQ(table.at("rows").at(1).at("name"), "to the first step");
  for (const auto& row : table.at("rows")) EXPECT_EQ(row.at("seconds").at("count"), 2);
  const auto& rows = table.at("rows");
  EXPECT_LE(rows.at(0).at("seconds").at("least"), rows.at(1).at("seconds").at("least"));
}

TEST(BenchRestart, RefusesWhatItCannotMeasure) {
  const tests::Workplace place;
  EXPECT_EQ(place.run({"bench", "restart", "--ranks", "0"}).code, 2);
  EXPECT_EQ(place.run({"bench", "restart", "--round", "3"}).code, 2);
}

}  // namespace
}  // namespace gradring
