// SPDX-License-Identifier: Apache-2.0
// gradring plan beside the training that the same words start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/in_shell.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;
using tests::Workplace;

/// The words behind `gradring train` that a training and its plan have in common.
Words planned(const Words& more) {
  Words words = short_training(more);
  words.front() = "plan";
  return words;
}

TEST(Plan, MeetsWhatTheTrainingCounts) {
  const Workplace place;
  for (const Words& more : std::vector<Words>{{"--nprocs", "2"},
                                              {"--precision", "fp16", "--accumulate", "2", "--optimizer", "sgd"},
                                              {"--model", "convnet-deep", "--checkpoint-activations", "auto"}}) {
    SCOPED_TRACE(more.front());
    const ProgramEnd end = place.run(tests::joined(planned(more), {"-J", "plan.json"}));
    ASSERT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.out, AllOf(HasSubstr("optimizer"), HasSubstr("activations"), HasSubstr("total")));
    EXPECT_THAT(place.left(), ElementsAre("plan.json")) << "a plan makes no run directory";
    const json plan = tests::parse_json(tests::text_of(place.path("plan.json")));
    std::filesystem::remove(place.path("plan.json"));

    ASSERT_EQ(place.run(short_training(more)).code, 0);
    const json run = tests::parse_json(tests::text_of(place.path("run") / "summary.json"));
    std::filesystem::remove_all(place.path("run"));
    EXPECT_EQ(plan.at("world_size"), run.at("world_size"));
    for (const auto& [name, bytes] : plan.at("planned_bytes").items()) {
      const json& row = run.at("memory").at(name);
      EXPECT_EQ(row.at("planned_bytes"), bytes) << name;
      const auto peak = row.at("peak_bytes").get<double>();
      EXPECT_LE(std::abs(bytes.get<double>() - peak), 0.05 * peak) << name;
    }
  }
}

TEST(Plan, TakesAnyNumberOfRanks) {
  const Workplace place;
  const ProgramEnd end = place.run(planned({"--world-size", "512"}));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("512 ranks"));
  const ProgramEnd none = place.run(planned({"--world-size", "0"}));
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--world-size"));
}

TEST(Plan, SaysHowLittleABudgetMustAllow) {
  const Workplace place;
  const Words tight = {"--checkpoint-activations", "auto", "--activation-budget-mb", "0.001"};
  for (const Words& words : {planned(tight), short_training(tight)}) {
    const ProgramEnd end = place.run(words);
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.err, AllOf(HasSubstr("do not fit the budget of 0.001 MiB"), HasSubstr("lower the batch size")));
  }
}

/// Without the check, ulimit -f ends the run before it takes the memory of the machine.
TEST(Plan, OfMoreMemoryThanTheMachineHasIsRejectedBeforeItIsAllocated) {
  const Workplace place;
  std::ofstream(place.path("big.toml")) << "layers = [{ flatten = 'flatten' }, { linear = 'fc1', out = 1000000 },"
                                           " { linear = 'fc2', out = 1000000 }, { linear = 'fc', out = 'classes' }]";
  for (const Words& more : std::vector<Words>{{"--dry-run"}, {}, {"--nprocs", "2"}, {"--nprocs", "2", "--dry-run"}}) {
    const ProgramEnd end = tests::run_program(
        tests::in_shell(place.gradring(tests::joined(short_training({"--model", "big.toml", "--device", "cpu"}), more)),
                        "ulimit -c 0; ulimit -f 100000; exec \"$@\""));
    EXPECT_EQ(end.code, 3) << end.err;
    EXPECT_THAT(end.err, AllOf(HasSubstr("the training needs"), HasSubstr("MiB of memory, but"),
                               HasSubstr("MiB are available on this host"),
                               HasSubstr(more.size() > 1 ? "2 ranks" : "1 rank"), HasSubstr("gradring plan")));
  }
}

TEST(Plan, KnowsTheOptionsOfTrain) {
  const Workplace place;
  const ProgramEnd help = place.run({"plan", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("--batch-size"), HasSubstr("--world-size"), HasSubstr("--config")));
  const ProgramEnd wrong = place.run({"plan", "--batch-sice", "3"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("batch-size"));
}

}  // namespace
}  // namespace gradring
