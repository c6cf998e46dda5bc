// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/run.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/data/support/message_of.h"
#include "tests/train/records/checkpoint/small_checkpoint.h"
#include "tests/train/view/runs/written_run.h"
#include "train/core/setup/run_lock.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/metrics/summary.h"
#include "train/view/runs/run_config.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::message_of;
using tests::start_at;
using tests::step_at;

class Runs : public ::testing::Test {
 protected:
  TimedEvent end(Outcome outcome, const std::string& reason = "") const {
    return {.time = 20, .event = EndRecord{.outcome = outcome, .reason = reason, .steps = 2}};
  }
  /// The lock file of a process on another host.
  void write_foreign_lock(const fs::path& run) const {
    std::ofstream(run / kRunLockFile) << R"({"pid":7,"host":"elsewhere.invalid","started":"","launch_folder":""})";
  }
  tests::WrittenRuns runs_;
};

TEST_F(Runs, StateIsTheOutcomeOfTheirEnd) {
  const std::pair<Outcome, RunState> states[] = {{Outcome::finished, RunState::finished},
                                                 {Outcome::interrupted, RunState::stopped},
                                                 {Outcome::diverged, RunState::failed},
                                                 {Outcome::failed, RunState::failed}};
  for (const auto& [outcome, state] : states) {
    const auto run = open_run(runs_.write(std::string(name_of(outcome)), {start_at(10), end(outcome, "the reason")}));
    EXPECT_EQ(run.state, state) << name_of(outcome);
    const std::string prefix = outcome == Outcome::failed ? "" : std::string(name_of(outcome)) + ": ";
    EXPECT_EQ(run.reason, outcome == Outcome::finished ? "" : prefix + "the reason");
  }
}

TEST_F(Runs, StateIsRunningWhileTheLockIsHeld) {
  const fs::path path = runs_.write("a", {start_at(10), step_at(11, 1), end(Outcome::failed)});
  {
    const RunLock lock(path, {});
    EXPECT_EQ(open_run(path).state, RunState::running);
  }
  EXPECT_EQ(open_run(path).state, RunState::failed);
}

TEST_F(Runs, StateOfAKilledRunIsFailed) {
  const fs::path path = runs_.write("a", {start_at(10), step_at(11, 1)});
  const auto run = open_run(path);
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_THAT(run.reason, HasSubstr("killed"));
}

TEST_F(Runs, StateOfAnotherHostsRunIsRunningWhileItsEventsAreRecent) {
  const fs::path path = runs_.write("a", {start_at(10), step_at(11, 1)});
  write_foreign_lock(path);
  EXPECT_EQ(open_run(path, wall_time()).state, RunState::running);
  EXPECT_EQ(open_run(path, wall_time() + 3600).state, RunState::failed);
}

TEST_F(Runs, StateOfARunWithoutAnEndIsInItsSummary) {
  const fs::path path = runs_.write("a", {});
  std::ofstream(metrics_of(path))
      << R"({"event":"train","time":1,"step":1,"epoch":1,"loss":2.5,"samples":64,"seconds":0.5})" << '\n';
  std::ofstream(summary_of(path)) << UnfinishedRun{.outcome = Outcome::interrupted, .reason = "by SIGTERM"}.to_json();
  const auto run = open_run(path);
  EXPECT_EQ(run.state, RunState::stopped);
  EXPECT_EQ(run.reason, "interrupted: by SIGTERM");
  EXPECT_EQ(run.figures.last_loss, 2.5);
  EXPECT_EQ(run.figures.seconds, 0.5);
  EXPECT_EQ(run.figures.samples_per_second, 128);
  EXPECT_THAT(config_of(run), ElementsAre(std::pair("lr", "0.001"))) << "from config.resolved.toml";
}

TEST_F(Runs, FiguresLeaveOutThePauseBetweenStarts) {
  const auto eval = [](double time, std::int64_t step, double accuracy) {
    return TimedEvent{.time = time, .event = EvalRecord{.step = step, .epoch = 1, .accuracy = accuracy, .loss = 0.5}};
  };
  const auto run = open_run(
      runs_.write("a", {start_at(100), step_at(101, 1), step_at(103, 2), eval(104, 2, 0.75), end(Outcome::interrupted),
                        start_at(1000, {.resumed_from = 2}), step_at(1002, 3, 0.25), eval(1005, 3, 0.5)}));
  EXPECT_EQ(run.figures.started, 100);
  EXPECT_EQ(run.figures.seconds, 4 + 5);
  EXPECT_EQ(run.figures.steps, 3);
  EXPECT_EQ(run.figures.total_steps, 100);
  EXPECT_EQ(run.figures.test.best_accuracy, 0.75);
  EXPECT_EQ(run.figures.test.best_step, 2);
  EXPECT_EQ(run.figures.test.last_accuracy, 0.5);
  EXPECT_EQ(run.figures.last_loss, 0.25);
}

TEST_F(Runs, BestCheckpointIsTheOneThatTheLinkNames) {
  const auto eval = [](std::int64_t step, double accuracy, bool ends_epoch) {
    return TimedEvent{.time = 11, .event = EvalRecord{.step = step, .ends_epoch = ends_epoch, .accuracy = accuracy}};
  };
  const fs::path path = runs_.write("a", {start_at(10), eval(5, 0.9, false), eval(10, 0.8, true), eval(20, 0.8, true)});
  EXPECT_FALSE(open_run(path).figures.best_saved_accuracy);
  EXPECT_FALSE(open_run(path).figures.best_is_not_saved()) << "nothing is saved";
  PosixFileSystem files;
  CheckpointDirectory directory(files, checkpoints_of(path));
  for (const std::int64_t step : {10, 20}) EXPECT_THAT(directory.save(small_checkpoint(step, 0.8)), ElementsAre());
  EXPECT_THAT(directory.save(small_checkpoint(25)), ElementsAre()) << "within an epoch: without a score";
  const RunFigures figures = open_run(path).figures;
  EXPECT_EQ(figures.test.best_accuracy, 0.9);
  EXPECT_EQ(figures.test.best_step, 5);
  EXPECT_EQ(figures.best_saved_accuracy, 0.8);
  EXPECT_EQ(figures.best_saved_step, 20);
  EXPECT_TRUE(figures.best_is_not_saved());
  std::ofstream(checkpoints_of(path) / "step-20" / kMetaFile) << "damaged";
  EXPECT_FALSE(open_run(path).figures.best_saved_accuracy);
}

TEST_F(Runs, AreReadUpToACutLineWithAWarning) {
  const fs::path path = runs_.write("a", {start_at(10), step_at(11, 1), step_at(12, 2)});
  fs::resize_file(metrics_of(path), fs::file_size(metrics_of(path)) - 20);
  const auto run = open_run(path);
  EXPECT_EQ(run.figures.steps, 1);
  EXPECT_THAT(run.history.warnings, ElementsAre(HasSubstr("line 3 is incomplete")));
}

TEST_F(Runs, AreNamedByDirectoryOrMetricsFile) {
  const fs::path path = runs_.write("a", {start_at(10)});
  EXPECT_EQ(find_run(path / ""), path);
  EXPECT_EQ(find_run(metrics_of(path)), path);
  EXPECT_THAT(message_of<UsageError>([&] { find_run(runs_.folder()); }), HasSubstr("is not a run directory"));
  EXPECT_THAT(message_of<UsageError>([&] { find_run(runs_.path("b")); }), HasSubstr("does not exist"));
}

TEST_F(Runs, DifferInSettingsButNotInNames) {
  RunHeader first{.name = "first", .ranks = 1, .config = {{"name", "\"first\""}, {"lr", "0.1"}, {"seed", "1"}}};
  RunHeader second{.name = "second", .ranks = 2, .config = {{"name", "\"second\""}, {"lr", "0.2"}, {"seed", "1"}}};
  const train::Run runs[] = {open_run(runs_.write("a", {start_at(1, first)})),
                             open_run(runs_.write("b", {start_at(1, second)})), open_run(runs_.write("c", {}))};
  const auto differences = config_differences(std::span(runs));
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].name, "ranks");
  EXPECT_THAT(differences[0].values, ElementsAre("1", "2", ""));
  EXPECT_EQ(differences[1].name, "seed") << "not known of the third";
  EXPECT_THAT(differences[1].values, ElementsAre("1", "1", ""));
  EXPECT_EQ(differences[2].name, "lr");
  EXPECT_THAT(differences[2].values, ElementsAre("0.1", "0.2", "0.001"));
  EXPECT_TRUE(config_differences(std::span(runs).first(1)).empty());
}

/// A start that made no step does not count.
TEST_F(Runs, ResumedWithOtherSettingsDifferInEachOfTheirPhases) {
  const auto start = [](double time, std::int64_t resumed_from, const std::string& rate, const std::string& tags) {
    RunHeader header{.ranks = 1, .config = {{"lr", rate}, {"log", tags}}};
    header.resumed_from = resumed_from;
    return start_at(time, header);
  };
  const train::Run runs[] = {
      open_run(runs_.write("a", {start(1, 0, "0.1", "\"\""), start(2, 20, "0.3", "\"x\""),
                                 start(3, 20, "0.2", "\"tensorboard\""), start(4, 30, "0.2", "\"\"")})),
      open_run(runs_.write("b", {start(1, 0, "0.2", "\"\""), start(2, 20, "0.2", "\"\"")}))};
  const auto differences = config_differences(std::span(runs));
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].name, "lr");
  EXPECT_THAT(differences[0].values, ElementsAre("0.1 -> 0.2", "0.2"));
  EXPECT_EQ(differences[1].name, "log");
  EXPECT_THAT(differences[1].values, ElementsAre("- -> tensorboard -> -", ""));
}

TEST_F(Runs, AreSkimmedToTheFiguresOfACompleteReading) {
  std::vector<TimedEvent> events = {start_at(10)};
  for (std::int64_t step = 1; step <= 30; ++step)
    events.push_back(
        step_at(10 + static_cast<double>(step), step, step == 7 ? std::nan("") : 1.0 / static_cast<double>(step)));
  StepRecord& named = std::get<StepRecord>(events[9].event);
  named.non_finite = R"(a "loss":5 inside a name)";
  const fs::path path = runs_.write("a", events);
  const auto read = open_run(path, 0), skimmed = open_run(path, 0, skim_line);
  ASSERT_EQ(skimmed.history.steps.size(), read.history.steps.size());
  for (std::size_t i = 0; i < read.history.steps.size(); ++i) {
    const auto &whole = read.history.steps[i], &part = skimmed.history.steps[i];
    EXPECT_EQ(part.time, whole.time);
    EXPECT_EQ(part.record.step, whole.record.step);
    EXPECT_EQ(part.record.epoch, whole.record.epoch);
    EXPECT_EQ(part.record.duration, whole.record.duration);
    EXPECT_TRUE(part.record.loss == whole.record.loss || (i == 6 && std::isnan(part.record.loss)));
  }
  EXPECT_EQ(skimmed.figures.samples_per_second, read.figures.samples_per_second);
}

}  // namespace
}  // namespace gradring::train
