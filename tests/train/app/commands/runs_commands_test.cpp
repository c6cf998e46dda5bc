// SPDX-License-Identifier: Apache-2.0
// gradring runs, on real runs.
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>

#include "tests/train/app/commands/support/run_directories.h"

namespace gradring::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RunsCommands : public RunDirectories {
 protected:
  ProgramEnd train(const std::string& run, const Words& more = {}) const {
    const Words words = {"train",      "--dataset", "digits",    "--steps",    "40",
                         "--progress", "none",      "--run-dir", "runs/" + run};
    return place_.run(joined(words, more));
  }
  nlohmann::json json_of(const Words& words) const {
    const ProgramEnd end = place_.run(joined(words, {"--json"}));
    EXPECT_EQ(end.code, 0) << end.err;
    return parse_json(end.out);
  }
};

TEST_F(RunsCommands, TellFinishedKilledAndRunningRunsApart) {
  ASSERT_EQ(train("good", {"--tags", "base", "--eval-every", "20"}).code, 0);
  ASSERT_EQ(train("killed", {"--nprocs", "2", "--inject", "kill:rank=1,step=20"}).code, 137);
  RunningProgram running(place_.gradring(joined(
      {"train", "--dataset", "digits", "--steps", "1000000", "--progress", "none"}, {"--run-dir", "runs/going"})));
  ASSERT_TRUE(trains(place_.path("runs/going")));

  std::map<std::string, nlohmann::json> runs;
  for (const auto& run : json_of({"runs", "ls"})) runs[run.at("path")] = run;
  EXPECT_EQ(runs.at("runs/good").at("state"), "finished");
  EXPECT_EQ(runs.at("runs/good").at("steps"), 40);
  EXPECT_EQ(runs.at("runs/good").at("last_accuracy"), summary_in(place_.path("runs/good")).at("accuracy"));
  EXPECT_EQ(runs.at("runs/killed").at("state"), "failed");
  EXPECT_LT(runs.at("runs/killed").at("steps"), 40);
  EXPECT_EQ(runs.at("runs/going").at("state"), "running");
  EXPECT_THAT(place_.run({"runs", "ls", "--tag", "base"}).out, AllOf(HasSubstr("good"), Not(HasSubstr("killed"))));
  EXPECT_THAT(place_.run({"runs", "ls", "--state", "failed,stopped"}).out,
              AllOf(HasSubstr("killed"), Not(HasSubstr("good"))));
  const nlohmann::json compared = json_of({"runs", "compare", "good", "killed"});
  EXPECT_EQ(compared.at("differences").at(0), nlohmann::json({{"name", "ranks"}, {"values", {"1", "2"}}}));
  EXPECT_THAT(place_.run({"runs", "show", "killed"}).out,
              AllOf(HasSubstr("State          failed"), HasSubstr("injected kill of rank 1 at step 20")));

  const ProgramEnd refused = place_.run({"runs", "rm", "good", "going", "--yes"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("runs/going is running"));
  EXPECT_TRUE(std::filesystem::exists(place_.path("runs/good/metrics.jsonl"))) << "nothing is removed";
  ::kill(running.pid(), SIGKILL);
  running.wait();
  EXPECT_EQ(json_of({"runs", "show", "going"}).at("state"), "failed");
  EXPECT_EQ(place_.run({"runs", "rm", "good"}).code, 2) << "there is no terminal to ask on";
  EXPECT_EQ(place_.run({"runs", "rm", "good", "killed", "runs/good", "going", "--yes"}).code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(place_.path("runs"))) << "training writes nothing that rm does not know";
}

/// The learning rate of the last steps ruins the weights, so an evaluation within the epoch is the best.
TEST_F(RunsCommands, TellTheBestCheckpointFromTheBestEvaluation) {
  const Words ruined = {"--steps",          "60",   "--eval-every",         "50",
                        "--schedule",       "step", "--schedule-step-size", "52",
                        "--schedule-gamma", "1000", "--progress",           "plain"};
  const ProgramEnd trained = train("a", ruined);
  ASSERT_EQ(trained.code, 0) << trained.err;
  const nlohmann::json shown = json_of({"runs", "show", "a"});
  EXPECT_EQ(shown.at("best_step"), 50);
  EXPECT_EQ(shown.at("best_saved_step"), 60);
  const double seen = shown.at("best_accuracy"), saved = shown.at("best_saved_accuracy");
  EXPECT_GT(seen, saved);
  EXPECT_EQ(json_of({"eval", "runs/a", "--best", "--device", "cpu"}).at("accuracy"), saved);

  const auto percent = [](double accuracy) {
    char text[16];
    std::snprintf(text, sizeof text, "%.2f %%", 100 * accuracy);
    return std::string(text);
  };
  EXPECT_THAT(trained.out, HasSubstr("\nBest saved     " + percent(saved) +
                                     " after step 60: checkpoints/step-60\n"
                                     "Best seen      " +
                                     percent(seen) + " after step 50: not saved"));
  EXPECT_THAT(place_.run({"runs", "show", "a"}).out,
              AllOf(HasSubstr("best " + percent(seen) + " (step 50)"),
                    HasSubstr("Best saved     " + percent(saved) + " (step 60): checkpoints are scored at the ends")));
  ASSERT_EQ(place_.run({"report", "runs/a"}).code, 0);
  EXPECT_THAT(text_of(place_.path("report.html")),
              AllOf(HasSubstr(percent(seen) + "</b><small>step 50, within an epoch: not saved"),
                    HasSubstr(percent(saved) + "</b><small>step 60: checkpoints/best")));
}

TEST_F(RunsCommands, ExportWhatPythonReadsAsTheJsonLines) {
  ASSERT_EQ(train("a", {"--nprocs", "2", "--tags", "a \"quoted\" tag", "--save-every-steps", "20", "--ema", "0.9",
                        "--inject", "delay:rank=1,step=3,ms=1", "--log-every", "5"})
                .code,
            0);
  const std::pair<const char*, int> events[] = {{"train", 40},     {"ranks", 16}, {"eval", 1}, {"header", 1},
                                                {"checkpoint", 3}, {"fault", 1},  {"end", 1},  {"restart", 0}};
  for (const auto& [event, rows] : events) {
    const ProgramEnd end = place_.run({"runs", "export", "a", "--event", event, "-o", "events.csv"});
    ASSERT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.out, IsEmpty());
    if (place_.run({"runs", "export", "a", "--event", event}).out != text_of(place_.path("events.csv")))
      ADD_FAILURE() << event << ": standard output differs from the file";
    const ProgramEnd check = run_program(
        {.command = {"/usr/bin/env", "python3", GRADRING_CHECK_CSV, "runs/a/metrics.jsonl", "events.csv", event},
         .folder = place_.folder().path()});
    if (check.code == 127) GTEST_SKIP() << "there is no python3";
    EXPECT_EQ(check.out, std::to_string(rows) + "\n") << event << check.err;
  }
}

TEST_F(RunsCommands, SayWhatIsWrongWithTheirArguments) {
  std::filesystem::create_directory(place_.path("empty"));
  const std::pair<Words, const char*> wrong[] = {
      {{"runs", "ls"}, "runs does not exist"},
      {{"runs", "ls", "data", "--sort", "age"}, "--sort"},
      {{"runs", "ls", "data", "--state", "dead"}, "must be running, finished, stopped or failed"},
      {{"runs", "show", "data"}, "is not a run directory"},
      {{"runs", "compare", "a"}, "expected two runs or more"},
      {{"runs", "rm", "data", "--yes"}, "is not a run directory"},
      {{"runs", "export", "nothing"}, "does not exist"},
      {{"top", "data"}, "is not a run directory"}};
  for (const auto& [words, message] : wrong) {
    const ProgramEnd end = place_.run(words);
    EXPECT_EQ(end.code, 2) << words.at(1) << end.err;
    EXPECT_THAT(end.err, HasSubstr(message));
  }
  EXPECT_EQ(place_.run({"runs", "ls", "empty"}).out, "no runs\n");
  EXPECT_EQ(json_of({"runs", "ls", "empty"}), nlohmann::json::array());
}

}  // namespace
}  // namespace gradring::tests
