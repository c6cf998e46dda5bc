// SPDX-License-Identifier: Apache-2.0
// Run directories by the program that was built: who may write into one, and what a resume says and leaves there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/train/cli/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using tests::ProgramEnd;
using tests::RunningProgram;
using tests::short_training;
using tests::Words;
using tests::Workplace;

Words joined(Words some, const Words& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

/// The three ways to start a training of `words`, which begin with "train".
std::map<std::string, Words> ways_to_start(const Words& words) {
  return {{"alone", words},
          {"spawned", joined(words, {"--nprocs", "2"})},
          {"launched", joined({"launch", "--nproc-per-node", "2"}, words)}};
}

class RunDirectories : public ::testing::Test {
 protected:
  bool waits_for(const std::function<bool()>& condition) const {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition() && std::chrono::steady_clock::now() < patience)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return condition();
  }
  /// Whether a process has ended, without waiting for it.
  static bool has_ended(pid_t pid) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
  }
  /// That a training in `run` has made steps.
  bool trains(const fs::path& run) const {
    return waits_for([&] { return !tests::lines_of(run / "metrics.jsonl").empty(); });
  }
  json summary_in(const fs::path& run) const {
    return json::parse(tests::text_of(run / "summary.json"), nullptr, false);
  }
  /// Every file below a folder, with its bytes and when they were written.
  std::map<std::string, std::pair<std::string, fs::file_time_type>> snapshot(const fs::path& folder) const {
    std::map<std::string, std::pair<std::string, fs::file_time_type>> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      files[entry.path().string()] = {entry.is_regular_file() ? tests::text_of(entry.path()) : "",
                                      fs::last_write_time(entry.path())};
    return files;
  }
  fs::path run() const { return place_.path("run"); }
  void expect_config_is_accepted(const std::string& config) const {
    const ProgramEnd end = place_.run({"train", "--config", config, "--run-dir", "another", "--dry-run"});
    EXPECT_EQ(end.code, 0) << config << ": " << end.err;
  }

  Workplace place_;
};

TEST_F(RunDirectories, AreLockedWhileARunLasts) {
  RunningProgram first(place_.gradring(short_training({"--steps", "1000000"})));
  ASSERT_TRUE(trains(run()));
  ::kill(first.pid(), SIGSTOP);  // so that it is the second run that changes something, if anybody does
  const auto before = snapshot(run());
  for (const auto& [name, words] : ways_to_start(short_training({"--steps", "9", "--resume", "auto"}))) {
    SCOPED_TRACE(name);
    const ProgramEnd end = place_.run(words);
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.err, AllOf(HasSubstr("run is in use by another run: process " + std::to_string(first.pid())),
                               HasSubstr(" on host "), ContainsRegex("started [0-9]{4}-[0-9]{2}-[0-9]{2} ")));
    EXPECT_EQ(tests::reasons_in(end.err), 1) << end.err;
    EXPECT_EQ(snapshot(run()), before);
  }
  ::kill(first.pid(), SIGKILL);
  ::kill(first.pid(), SIGCONT);
  first.wait();
  EXPECT_TRUE(fs::exists(run() / ".lock"));
  EXPECT_EQ(place_.run(short_training({"--steps", "9", "--resume", "auto"})).code, 0) << "a killed run blocks nobody";
  EXPECT_FALSE(fs::exists(run() / ".lock"));
}

TEST_F(RunDirectories, OfOneNameGoToOneOfTwoRunsThatStartTogether) {
  const Words words = short_training({"--steps", "1000000", "--epochs", "1000000", "--resume", "auto"});
  RunningProgram one(place_.gradring(words)), other(place_.gradring(words));
  ASSERT_TRUE(waits_for([&] { return has_ended(one.pid()) || has_ended(other.pid()); }));
  RunningProgram& refused = has_ended(one.pid()) ? one : other;
  RunningProgram& trains_on = has_ended(one.pid()) ? other : one;
  const ProgramEnd end = refused.wait();
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("in use by another run: process " + std::to_string(trains_on.pid())));
  ASSERT_TRUE(trains(run()));
  ::kill(trains_on.pid(), SIGINT);
  EXPECT_EQ(trains_on.wait().code, 130);
}

TEST_F(RunDirectories, OfGeneratedNamesAreDifferentForRunsThatStartTogether) {
  constexpr std::size_t kRuns = 6;
  std::vector<std::unique_ptr<RunningProgram>> runs;
  for (std::size_t i = 0; i < kRuns; ++i)
    runs.push_back(std::make_unique<RunningProgram>(
        place_.gradring({"train", "--dataset", "mnist", "--data-dir", "data", "--steps", "1", "--device", "cpu"})));
  for (const auto& program : runs) {
    const ProgramEnd end = program->wait();
    EXPECT_EQ(end.code, 0) << end.err;
  }
  std::size_t directories = 0;
  for (const auto& entry : fs::directory_iterator(place_.path("runs"))) {
    ++directories;
    EXPECT_EQ(summary_in(entry.path()).value("outcome", ""), "finished") << entry.path();
  }
  EXPECT_EQ(directories, kRuns);
}

TEST_F(RunDirectories, MayBeEmptyBefore) {
  fs::create_directory(run());
  const ProgramEnd end = place_.run(short_training());
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(summary_in(run()).at("steps"), 2);
}

TEST_F(RunDirectories, SayFromWhereARunResumesAndWhatChanged) {
  const auto train = [&](const Words& more) {
    return place_.run(joined(short_training({"--progress", "plain", "--epochs", "100"}), more));
  };
  ASSERT_EQ(train({"--steps", "4"}).code, 0);
  const std::string first = tests::text_of(run() / "config.resolved.toml");

  const ProgramEnd same = train({"--steps", "4", "--resume", "auto", "--run-dir", "run/", "--dry-run"});
  EXPECT_EQ(same.code, 0) << same.err;
  const ProgramEnd longer = train({"--steps", "6", "--lr", "0.002", "--resume", "auto"});
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_THAT(longer.out, HasSubstr("resumed from run/checkpoints/step-4: 4 steps done, in epoch 1; changed options: "
                                    "steps 4 -> 6, lr 0.001 -> 0.002 (config.resolved-2.toml)\n"));
  EXPECT_EQ(tests::text_of(run() / "config.resolved.toml"), first);
  const std::string second = tests::text_of(run() / "config.resolved-2.toml");
  EXPECT_THAT(second, AllOf(HasSubstr("\nsteps = 6\n"), HasSubstr("\nlr = 0.002\n")));

  const ProgramEnd elsewhere = train({"--steps", "7", "--resume", "run", "--run-dir", "other"});
  EXPECT_EQ(elsewhere.code, 0) << elsewhere.err;
  EXPECT_THAT(elsewhere.out, AllOf(HasSubstr("resumed from run/checkpoints/step-6: 6 steps done"),
                                   HasSubstr("changed options: steps 6 -> 7, lr 0.002 -> 0.001\n")));
  for (const char* config : {"run/config.resolved.toml", "run/config.resolved-2.toml", "other/config.resolved.toml"})
    expect_config_is_accepted(config);
}

TEST_F(RunDirectories, KeepOneConfigWhereAResumeChangesNothing) {
  const Words words = short_training({"--progress", "plain", "--steps", "1000000", "--epochs", "1000000"});
  {
    RunningProgram killed(place_.gradring(joined(words, {"--save-every-steps", "2"})));
    ASSERT_TRUE(waits_for([&] { return fs::exists(run() / "checkpoints" / "step-2"); }));
  }
  RunningProgram resumed(place_.gradring(joined(words, {"--save-every-steps", "2", "--resume", "auto"})));
  const auto log = run() / "logs" / "rank_0.log";
  ASSERT_TRUE(waits_for([&] { return tests::text_of(log).find("; no option changed") != std::string::npos; }));
  EXPECT_THAT(tests::text_of(log),
              ContainsRegex("resumed from run/checkpoints/step-[0-9]+: [0-9]+ steps done, in epoch"));
  EXPECT_FALSE(fs::exists(run() / "config.resolved-2.toml"));
}

TEST_F(RunDirectories, HoldTheValuesThatAutoStandsFor) {
  for (const auto& [name, words] : ways_to_start(short_training({"--progress", "none"}))) {
    SCOPED_TRACE(name);
    fs::remove_all(run());
    ASSERT_EQ(place_.run(words).code, 0);
    const std::string config = tests::text_of(run() / "config.resolved.toml");
    const std::string samples = name == "alone" ? "8" : "16";
    for (const std::string& line :
         {std::string("device = \"cpu\""), std::string("backend = \"cpu\""), std::string("precision = \"fp32\""),
          std::string("sampler = \"distributed\""), std::string("resident = \"off\""), std::string("comm = \"shm\""),
          std::string("allreduce = \"direct\""), "global-batch = " + samples})
      EXPECT_THAT(config, HasSubstr("\n" + line + "\n"));
    EXPECT_THAT(config, AllOf(ContainsRegex("\nthreads = [1-9]"), Not(HasSubstr("\nresume ="))));
    expect_config_is_accepted("run/config.resolved.toml");
  }
}

TEST_F(RunDirectories, OfAFinishedRunAreNotTrainedInAgain) {
  const Words words = short_training({"--progress", "plain", "--resume", "auto"});
  for (const auto& [name, start] : ways_to_start(words)) {
    SCOPED_TRACE(name);
    fs::remove_all(run());
    ASSERT_EQ(place_.run(start).code, 0);
    const auto before = snapshot(run());
    const ProgramEnd again = place_.run(start);
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_THAT(again.out, AllOf(HasSubstr("the run is already finished (2 steps): nothing was trained"),
                                 HasSubstr("Results of the finished run:\nTest accuracy "), Not(HasSubstr("Train:")),
                                 HasSubstr("Run directory  " + run().string())));
    EXPECT_EQ(snapshot(run()), before);
  }
}

TEST_F(RunDirectories, OfAFinishedRunTellSoEvenWhereProgressIsNotShown) {
  ASSERT_EQ(place_.run(short_training()).code, 0);
  const ProgramEnd again = place_.run(short_training({"--resume", "auto"}));
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, "");
  EXPECT_THAT(again.err, HasSubstr("gradring train: the run is already finished (2 steps): nothing was trained"));
}

/// A run directory is never a folder that only contains the run which is resumed.
TEST_F(RunDirectories, OfUsersAreNotTakenForThatOfARunInside) {
  ASSERT_EQ(place_.run(short_training({"--run-dir", "mine/run"})).code, 0);
  std::ofstream(place_.path("mine/summary.json")) << "precious";
  const auto before = snapshot(place_.path("mine"));
  for (const char* from : {"mine/run", "mine/run/checkpoints/step-2"}) {
    const ProgramEnd end = place_.run(short_training({"--run-dir", "mine", "--resume", from, "--steps", "4"}));
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.err, HasSubstr("exists and is not an empty directory"));
    EXPECT_TRUE(snapshot(place_.path("mine")) == before) << "a file has changed";
  }
}

TEST_F(RunDirectories, KeepTheSummaryWhereAResumeCannotStart) {
  ASSERT_EQ(place_.run(short_training()).code, 0);
  const std::string summary = tests::text_of(run() / "summary.json");
  const fs::path log = run() / "logs" / "rank_0.log";
  fs::remove(log);
  fs::create_directory(log);
  EXPECT_EQ(place_.run(short_training({"--resume", "auto", "--steps", "4"})).code, 3);
  EXPECT_EQ(tests::text_of(run() / "summary.json"), summary);
}

TEST_F(RunDirectories, WithoutAReadableConfigAreComparedWithTheCheckpoint) {
  const Words words = short_training({"--progress", "plain", "--resume", "auto"});
  for (const char* text : {"", "half a fi"}) {
    fs::remove_all(run());
    ASSERT_EQ(place_.run(short_training()).code, 0);
    std::ofstream(run() / "config.resolved.toml") << text;
    const ProgramEnd end = place_.run(joined(words, {"--steps", "4"}));
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.out, HasSubstr("changed options: steps 2 -> 4"));
  }
}

TEST_F(RunDirectories, TellTheOutcomeOfARunThatDiverged) {
  const ProgramEnd end = place_.run(short_training({"--optimizer", "sgd", "--lr", "1e12", "--steps", "20"}));
  EXPECT_EQ(end.code, 5);
  const json summary = summary_in(run());
  EXPECT_EQ(summary.at("outcome"), "diverged");
  EXPECT_THAT(summary.at("reason"), HasSubstr("the loss of step "));
  EXPECT_GE(summary.at("steps"), 1);
  EXPECT_EQ(summary.at("device"), "cpu");
  EXPECT_FALSE(summary.contains("accuracy"));
  EXPECT_FALSE(fs::exists(run() / ".lock"));
}

/// The command after "to resume:".
std::string printed_command(const std::string& err) {
  const std::string head = "to resume:\n  ";
  const std::size_t at = err.find(head);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + head.size();
  return err.substr(begin, err.find('\n', begin) - begin);
}

/// Ctrl-C prints a command that goes on where the run stopped, however it was started and whatever its directory is called.
TEST_F(RunDirectories, AreResumedByTheCommandThatAnInterruptPrints) {
  const Words training = {"train",        "--dataset", "mnist",    "--data-dir", "data",
                          "--batch-size", "8",         "--device", "cpu",        "--epochs",
                          "20",           "--steps",   "12",       "--inject",   "delay:rank=0,step=6,ms=1500"};
  for (const auto& [name, words] : ways_to_start(training)) {
    SCOPED_TRACE(name);
    fs::remove_all(place_.path("runs"));
    RunningProgram interrupted(place_.gradring(words, {{"GRADRING_LR", "0.002"}}));
    ASSERT_TRUE(waits_for([&] { return fs::exists(place_.path("runs")) && !fs::is_empty(place_.path("runs")); }));
    const fs::path run = fs::directory_iterator(place_.path("runs"))->path();
    ASSERT_TRUE(trains(run));
    ::kill(interrupted.pid(), SIGINT);
    const ProgramEnd end = interrupted.wait();
    ASSERT_EQ(end.code, 130) << end.err;
    const json summary = summary_in(run);
    EXPECT_EQ(summary.at("outcome"), "interrupted");
    EXPECT_LT(summary.at("steps"), 12);

    const std::string command = printed_command(end.err);
    EXPECT_THAT(command, HasSubstr("--run-dir runs/" + run.filename().string() + " --resume auto"));
    EXPECT_THAT(command, HasSubstr("GRADRING_LR=0.002 "));
    tests::ProgramSpec shell = place_.gradring({});
    shell.command = {"/bin/sh", "-c", command};
    const ProgramEnd resumed = tests::run_program(shell);
    EXPECT_EQ(resumed.code, 0) << command << "\n" << resumed.err;
    EXPECT_THAT(resumed.out, AllOf(HasSubstr("resumed from runs/"), HasSubstr("; no option changed")));
    EXPECT_EQ(summary_in(run).at("outcome"), "finished");
    EXPECT_EQ(summary_in(run).at("steps"), 12);
    EXPECT_EQ(summary_in(run).at("world_size"), name == "alone" ? 1 : 2);
  }
}

}  // namespace
}  // namespace gradring
