// SPDX-License-Identifier: Apache-2.0
// Short trainings by the program that was built: what they leave behind, and that layouts of ranks repeat themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"
#include "train/core/config/options.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using tests::launched;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;
using tests::Workplace;

class Runs : public ::testing::Test {
 protected:
  /// The summary of a run that must end well and say nothing on stderr.
  json summary_of(const Words& words, const std::string& run_dir = "run") const {
    const ProgramEnd end = place_.run(words);
    EXPECT_EQ(end.code, 0);
    EXPECT_EQ(end.err, "");
    return tests::parse_json(tests::text_of(place_.path(run_dir) / "summary.json"));
  }
  std::vector<std::string> in(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(place_.path(folder)))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  Workplace place_;
};

TEST_F(Runs, LeaveACompleteRunDirectory) {
  const json summary = summary_of(short_training());
  EXPECT_THAT(in("run"), ElementsAre("checkpoints", "config.resolved.toml", "logs", "metrics.jsonl", "summary.json"));
  EXPECT_THAT(in("run/logs"), ElementsAre("rank_0.log"));
  EXPECT_THAT(in("run/checkpoints"), ElementsAre("best", "latest", "step-2"));
  EXPECT_THAT(place_.left(), ElementsAre("run"));

  EXPECT_EQ(summary.at("steps"), 2);
  EXPECT_EQ(summary.at("world_size"), 1);
  EXPECT_EQ(summary.at("device"), "cpu");
  EXPECT_EQ(summary.at("precision"), "fp32");
  EXPECT_EQ(summary.at("parameters_sha256").get<std::string>().size(), 64u);
  for (const char* field : {"accuracy", "loss", "train_loss", "seconds", "samples_per_second"})
    EXPECT_TRUE(summary.at(field).is_number()) << field;

  const auto lines = tests::records_of(place_.path("run/metrics.jsonl"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(tests::parse_json(lines[0]).at("event"), "train");
  EXPECT_EQ(tests::parse_json(lines[1]).at("step"), 2);
  const json eval = tests::parse_json(lines[2]);
  EXPECT_EQ(eval.at("samples"), 32);
  EXPECT_EQ(eval.at("accuracy"), summary.at("accuracy"));
}

TEST_F(Runs, RepeatThemselvesInEveryLayout) {
  const auto weights = [this](const Words& words) { return summary_of(words).at("parameters_sha256"); };
  const auto again = [&](const Words& words) {
    std::filesystem::remove_all(place_.path("run"));
    return weights(words);
  };
  const json alone = again(short_training());
  EXPECT_EQ(again(short_training()), alone);
  const json spawned = again(short_training({"--nprocs", "2"}));
  EXPECT_EQ(again(short_training({"--nprocs", "2"})), spawned);
  EXPECT_EQ(again(launched(short_training())), spawned);
  EXPECT_NE(spawned, alone) << "two ranks have twice the batch";
}

TEST_F(Runs, EndWithTheSameWeightsWhateverCarriesTheGradients) {
  const auto weights = [this](const std::string& comm) {
    const Words digits = {"launch", "--nproc-per-node", "2",  "train",  "--dataset", "digits", "--epochs",
                          "2",      "--run-dir",        comm, "--comm", comm};
    return summary_of(digits, comm).at("parameters_sha256");
  };
  const json over_memory = weights("shm");
  EXPECT_EQ(weights("tcp"), over_memory);
  EXPECT_EQ(weights("auto"), over_memory);
  const Words in_a_ring = {"launch", "--nproc-per-node", "2",    "train",       "--dataset", "digits", "--epochs",
                           "2",      "--run-dir",        "ring", "--allreduce", "ring"};
  EXPECT_EQ(summary_of(in_a_ring, "ring").at("parameters_sha256"), over_memory);
}

TEST_F(Runs, OfTwoRanksLeaveTwoLogs) {
  EXPECT_EQ(summary_of(launched(short_training())).at("world_size"), 2);
  EXPECT_THAT(in("run/logs"), ElementsAre("rank_0.log", "rank_1.log"));
  const auto lines = tests::lines_of(place_.path("run/logs/rank_1.log"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], HasSubstr("rank 1 of 2, process "));
  EXPECT_THAT(lines[1], HasSubstr("Train: 1 [   1/2 ( 50%)]"));
  EXPECT_THAT(lines[2], HasSubstr("Train: 1 [   2/2 (100%)]"));
  EXPECT_THAT(lines[3], HasSubstr("Epoch 1: test accuracy"));
}

TEST_F(Runs, OfRanksStartedByHandMeet) {
  const auto rank = [this](const std::string& number) {
    return place_.gradring(short_training(), {{"RANK", number}, {"WORLD_SIZE", "2"}});
  };
  for (int again = 0; again < 2; ++again) {  // nothing that the first run leaves may disturb the second
    tests::RunningProgram second(rank("1"));
    tests::RunningProgram first(rank("0"));
    EXPECT_EQ(first.wait().code, 0);
    EXPECT_EQ(second.wait().err, "");
    EXPECT_THAT(place_.left(), ElementsAre("run"));
    std::filesystem::remove_all(place_.path("run"));
  }
}

TEST_F(Runs, StartAgainFromTheirResolvedConfig) {
  const json first = summary_of(short_training({"--optimizer", "sgd", "--momentum", "0.9", "--nesterov"}));
  const json second = summary_of({"train", "--config", "run/config.resolved.toml", "--run-dir", "again"}, "again");
  EXPECT_EQ(first.at("parameters_sha256"), second.at("parameters_sha256"));
  EXPECT_EQ(tests::text_of(place_.path("run/config.resolved.toml")),
            tests::text_of(place_.path("again/config.resolved.toml")));
}

TEST_F(Runs, TellThePersonHowTheyEnded) {
  const ProgramEnd end = place_.run(short_training({"--progress", "plain"}));
  EXPECT_THAT(end.out, AllOf(HasSubstr("Model          convnet, "),
                             HasSubstr("Steps          2 of 8 samples: 0.2 epochs of 8 steps\n"),
                             HasSubstr("Train: 1 [   1/2"), HasSubstr("Test accuracy  "), HasSubstr("on 1 rank\n"),
                             HasSubstr("Run directory  " + place_.path("run").string()), Not(HasSubstr("\033"))));
}

TEST_F(Runs, KeepQuietIfAsked) { EXPECT_EQ(place_.run(short_training()).out, ""); }

TEST_F(Runs, ThatAreDryLeaveNothing) {
  const ProgramEnd end = place_.run(short_training({"--dry-run", "--nprocs", "2"}));
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.out, AllOf(StartsWith("mnist: 64 training and 32 test samples"), HasSubstr("nothing was trained")));
  EXPECT_EQ(std::ranges::count(end.out, '\n'), 1);
  EXPECT_THAT(place_.left(), IsEmpty());
}

TEST_F(Runs, PrintTheirConfigOnce) {
  const ProgramEnd end = place_.run(launched(short_training({"--print-config"})));
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(std::ranges::count(end.out, '\n'), std::ssize(train::train_options()));
  EXPECT_THAT(end.out, HasSubstr("batch-size = 8 "));
  EXPECT_THAT(place_.left(), IsEmpty());
}

TEST(Help, OfEveryCommandGoesToStdout) {
  const Workplace place;
  for (const Words& words : {Words{"--help"}, Words{"help"}, Words{"-h"}}) {
    const ProgramEnd end = place.run(words);
    EXPECT_EQ(end.code, 0);
    EXPECT_THAT(end.out, AllOf(HasSubstr("\n  train "), HasSubstr("\n  launch ")));
  }
  const ProgramEnd train = place.run({"train", "--help"});
  EXPECT_EQ(train.code, 0);
  for (const train::TrainOption& option : train::train_options()) EXPECT_THAT(train.out, HasSubstr("--" + option.name));
  const ProgramEnd launch = place.run({"launch", "--help"});
  EXPECT_EQ(launch.code, 0);
  EXPECT_THAT(launch.out, HasSubstr("--nproc-per-node"));
}

TEST(Help, OfTrainIsThereEvenWhereTheEnvironmentIsWrong) {
  EXPECT_EQ(Workplace().run({"train", "--help"}, {{"RANK", "5"}, {"GRADRING_LR", "x"}}).code, 0);
}

TEST(Help, GoesToStderrWhereNothingWasAsked) {
  const ProgramEnd end = Workplace().run({});
  EXPECT_EQ(end.code, 2);
  EXPECT_EQ(end.out, "");
  EXPECT_THAT(end.err, HasSubstr("Usage: gradring COMMAND"));
}

TEST(Version, IsALine) {
  const ProgramEnd end = Workplace().run({"--version"});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.out, ::testing::MatchesRegex("gradring [0-9.]+ \\(commit [0-9a-z-]+\\)\n"));
}

}  // namespace
}  // namespace gradring
