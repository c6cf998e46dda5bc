// SPDX-License-Identifier: Apache-2.0
// gradring bench launch, by the program that was built. How fast it is is not asked here.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/train/cli/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BenchLaunch, MeasuresOurLauncherAndWhatItFindsBesideIt) {
  const tests::Workplace place;
  const auto end = place.run({"bench", "launch", "--workers", "3", "--rounds", "2", "-J", "table.json"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("3 workers, 2 rounds"));
  const auto table = nlohmann::json::parse(tests::text_of(place.path("table.json")));
  EXPECT_EQ(table.at("benchmark"), "launch");
  EXPECT_EQ(table.at("workers"), 3);
  EXPECT_EQ(table.at("rows").at(0).at("name"), "gradring launch");
  for (const auto& row : table.at("rows")) EXPECT_EQ(row.at("seconds").at("count"), 2);
  EXPECT_THAT(place.left(), ElementsAre("table.json"));
}

TEST(BenchLaunch, RefusesWhatItCannotMeasure) {
  const tests::Workplace place;
  EXPECT_EQ(place.run({"bench", "launch", "--workers", "0"}).code, 2);
  EXPECT_EQ(place.run({"bench", "launch", "--round", "3"}).code, 2);
}

}  // namespace
}  // namespace gradring
