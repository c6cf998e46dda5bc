// SPDX-License-Identifier: Apache-2.0
// gradring bench loader, by the program that was built. How fast it is is not asked here.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/train/cli/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(BenchLoader, MeasuresFillingAndTheLoader) {
  const tests::Workplace place;
  const auto end = place.run({"bench", "loader", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "5",
                              "--epochs", "3", "-J", "table.json"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("commit"), HasSubstr("64 samples of [28, 28, 1], batch 5, 3 shuffled epochs")));
  const auto table = nlohmann::json::parse(tests::text_of(place.path("table.json")));
  EXPECT_EQ(table.at("benchmark"), "loader");
  EXPECT_EQ(table.at("samples"), 64);
  ASSERT_EQ(table.at("rows").size(), 2);
  EXPECT_EQ(table.at("rows").at(0).at("name"), "fill");
  EXPECT_EQ(table.at("rows").at(1).at("name"), "loader");
  for (const auto& row : table.at("rows")) {
    EXPECT_EQ(row.at("epoch_seconds").at("count"), 3);
    EXPECT_GT(row.at("samples_per_second_per_core"), 0);
  }
}

TEST(BenchLoader, RefusesWhatItCannotMeasure) {
  const tests::Workplace place;
  EXPECT_EQ(place.run({"bench", "loader", "--epochs", "0"}).code, 2);
  EXPECT_EQ(place.run({"bench", "loader", "--dataset", "mnits"}).code, 2);
  EXPECT_EQ(place.run({"bench", "loader", "--dataset", "cifar10", "--data-dir", "data"}).code, 4);
}

}  // namespace
}  // namespace gradring
