// SPDX-License-Identifier: Apache-2.0
// gradring bench seeds, by the program that was built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::ProgramEnd;
using tests::Words;
using tests::Workplace;

const Words kBench = {"bench", "seeds", "--n", "2", "--first-seed", "5", "--run-dir", "runs", "-J", "bench.json"};

Words training(const std::string& epochs) {
  return {"train", "--dataset", "digits", "--batch-size", "500", "--epochs",
          epochs,  "--tta",     "flip",   "--device",     "cpu"};
}

TEST(BenchSeeds, GivesTheMeanOfRunsAndContinuesThem) {
  const Workplace place;
  const ProgramEnd end = place.run(tests::joined(kBench, training("1")));
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("tta_accuracy %"), HasSubstr("95 % confidence"), HasSubstr("seed")));
  const auto json = tests::parse_json(tests::text_of(place.path("bench.json")));
  const auto& rows = json.at("rows");
  ASSERT_EQ(rows.size(), 2u);
  double sum = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string run = "runs/seed-" + std::to_string(5 + i);
    const auto summary = tests::parse_json(tests::text_of(place.path(run + "/summary.json")));
    EXPECT_EQ(rows[i].at("seed"), 5 + i);
    EXPECT_EQ(rows[i].at("accuracy"), summary.at("accuracy"));
    EXPECT_EQ(rows[i].at("tta_accuracy"), summary.at("tta_accuracy"));
    sum += 100 * summary.at("accuracy").get<double>();
  }
  EXPECT_NEAR(json.at("percent").at("accuracy").at("mean").get<double>(), sum / 2, 1e-9);
  EXPECT_EQ(json.at("measurements").size(), 2u);

  const ProgramEnd again = place.run(tests::joined(kBench, training("1")));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("nothing was trained"));
  const auto same = tests::parse_json(tests::text_of(place.path("bench.json")));
  EXPECT_EQ(same.at("percent"), json.at("percent"));

  EXPECT_THAT(again.out, ContainsRegex("[0-9] +-\n")) << "what an earlier start took is unknown";

  std::filesystem::remove(
      place.path("runs/seed-6/summary.json"));  // as if the second training had been killed at its end
  const ProgramEnd continued = place.run(tests::joined(kBench, training("1")));
  ASSERT_EQ(continued.code, 0) << continued.err;
  EXPECT_EQ(tests::parse_json(tests::text_of(place.path("bench.json"))).at("percent"), json.at("percent"));

  const ProgramEnd longer = place.run(tests::joined(kBench, training("2")));
  EXPECT_EQ(longer.code, 2);
  EXPECT_THAT(longer.err, AllOf(HasSubstr("epochs = '2' instead of '1'"), HasSubstr("give another --run-dir")));
}

TEST(BenchSeeds, ListsItsTrainingsAndRejectsWhatItSetsItself) {
  const Workplace place;
  Words list = kBench;
  list.emplace_back("--list");
  const ProgramEnd end = place.run(tests::joined(list, training("1")));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, ContainsRegex("gradring train .* --seed 6 --run-dir runs/seed-6"));
  for (const Words& wrong : {Words{"train", "--seed", "1"}, Words{"train", "--run-dir=x"}, Words{"eval", "x"}, Words{}})
    EXPECT_EQ(place.run(tests::joined(kBench, wrong)).code, 2) << testing::PrintToString(wrong);
  const ProgramEnd homeless = place.run(tests::joined({"bench", "seeds"}, training("1")));
  EXPECT_EQ(homeless.code, 2);
  EXPECT_THAT(homeless.err, HasSubstr("--run-dir"));
}

TEST(BenchSeeds, SaysHowToContinueWhenATrainingFails) {
  const Workplace place;
  const ProgramEnd end = place.run(tests::joined(kBench, {"train", "--dataset", "mnist", "--data-dir", "nowhere"}));
  EXPECT_EQ(end.code, 3) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr("the training with seed 5 did not finish"), HasSubstr("repeat the command")));
}

}  // namespace
}  // namespace gradring
