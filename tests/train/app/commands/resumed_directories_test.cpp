// SPDX-License-Identifier: Apache-2.0
// What runs and resumes leave in a run directory, and say about it, by the program that was built.
#include "tests/train/app/commands/support/run_directories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>

namespace gradring {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::joined;
using tests::ProgramEnd;
using tests::RunningProgram;
using tests::short_training;
using tests::ways_to_start;
using tests::Words;
using ResumedDirectories = tests::RunDirectories;

TEST_F(ResumedDirectories, SayFromWhereARunResumesAndWhatChanged) {
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

TEST_F(ResumedDirectories, KeepOneConfigWhereAResumeChangesNothing) {
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

TEST_F(ResumedDirectories, HoldTheValuesThatAutoStandsFor) {
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

TEST_F(ResumedDirectories, OfAFinishedRunAreNotTrainedInAgain) {
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

TEST_F(ResumedDirectories, OfAFinishedRunTellSoEvenWhereProgressIsNotShown) {
  ASSERT_EQ(place_.run(short_training()).code, 0);
  const ProgramEnd again = place_.run(short_training({"--resume", "auto"}));
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, "");
  EXPECT_THAT(again.err, HasSubstr("gradring train: the run is already finished (2 steps): nothing was trained"));
}

TEST_F(ResumedDirectories, KeepTheSummaryWhereAResumeCannotStart) {
  ASSERT_EQ(place_.run(short_training()).code, 0);
  const std::string summary = tests::text_of(run() / "summary.json");
  const fs::path log = run() / "logs" / "rank_0.log";
  fs::remove(log);
  fs::create_directory(log);
  EXPECT_EQ(place_.run(short_training({"--resume", "auto", "--steps", "4"})).code, 3);
  EXPECT_EQ(tests::text_of(run() / "summary.json"), summary);
}

TEST_F(ResumedDirectories, StayUnchangedIfALogCannotBeOpened) {
  ASSERT_EQ(place_.run(short_training({"--save-every-steps", "1", "--nprocs", "2"})).code, 0);
  for (const char* name : {"rank_0.log", "rank_1.log"}) {
    SCOPED_TRACE(name);
    const fs::path log = run() / "logs" / name;
    fs::rename(log, place_.path("aside"));
    fs::create_directory(log);
    const std::string metrics = tests::text_of(run() / "metrics.jsonl");
    const ProgramEnd end = place_.run(
        short_training({"--nprocs", "2", "--resume", "run/checkpoints/step-1", "--steps", "4", "--lr", "0.002"}));
    EXPECT_EQ(end.code, 3) << end.err;
    EXPECT_EQ(tests::text_of(run() / "metrics.jsonl"), metrics);
    EXPECT_TRUE(fs::exists(step_folder(2)));
    EXPECT_FALSE(fs::exists(run() / "config.resolved-2.toml"));
    fs::remove(log);
    fs::rename(place_.path("aside"), log);
  }
}

TEST_F(ResumedDirectories, KeepEveryAbandonedCheckpoint) {
  ASSERT_EQ(place_.run(short_training({"--save-every-steps", "1"})).code, 0);
  for (const char* rate : {"0.002", "0.003"})
    ASSERT_EQ(place_.run(short_training({"--resume", "run/checkpoints/step-1", "--lr", rate})).code, 0);
  const fs::path checkpoints = run() / "checkpoints";
  EXPECT_TRUE(fs::exists(checkpoints / "abandoned-step-2" / "meta.json"));
  EXPECT_THAT(tests::text_of(checkpoints / "abandoned-step-2-2" / "meta.json"), HasSubstr("lr = 0.002"));
  const json listed = json::parse(place_.run({"ckpt", "ls", "run", "--json"}).out);
  EXPECT_EQ(std::ranges::count(listed, "abandoned", [](const json& one) { return one.at("state"); }), 2);
  EXPECT_EQ(place_.run({"ckpt", "prune", "run", "--abandoned"}).out,
            "removed run/checkpoints/abandoned-step-2\nremoved run/checkpoints/abandoned-step-2-2\n");
  EXPECT_FALSE(fs::exists(checkpoints / "abandoned-step-2-2"));
}

TEST_F(ResumedDirectories, WithoutACheckpointGoOnFromTheOneTheyStartedFrom) {
  ASSERT_EQ(place_.run(short_training()).code, 0);
  const Words second = short_training({"--run-dir", "second", "--resume", "run/checkpoints/step-2", "--steps", "2"});
  const ProgramEnd complete = place_.run(second);
  EXPECT_EQ(complete.code, 0) << complete.err;
  EXPECT_THAT(complete.err, HasSubstr("the training is already complete at step 2: nothing is trained"));
  ASSERT_GT(fs::remove_all(place_.path("second") / "checkpoints"), 0u) << "the one it evaluated";
  const ProgramEnd longer =
      place_.run(short_training({"--run-dir", "second", "--resume", "auto", "--steps", "4", "--progress", "plain"}));
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_THAT(longer.out, HasSubstr("resumed from run/checkpoints/step-2: 2 steps done"));
  ASSERT_EQ(place_.run(short_training({"--run-dir", "third", "--resume", "run", "--steps", "4"})).code, 0);
  EXPECT_EQ(summary_in(place_.path("second")).at("parameters_sha256"),
            summary_in(place_.path("third")).at("parameters_sha256"));
}

TEST_F(ResumedDirectories, WithoutAReadableConfigAreComparedWithTheCheckpoint) {
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

/// A disk or a limit that gets in the way says nothing about a checkpoint. As root, no permission does: a name that is
/// too long.
TEST_F(ResumedDirectories, WhoseCheckpointCannotBeReadStayAsTheyAre) {
  ASSERT_EQ(place_.run(short_training({"--save-every-steps", "1"})).code, 0);
  for (const char* file : {"meta.json", "state.safetensors", "model.safetensors"}) {
    SCOPED_TRACE(file);
    fs::rename(step_folder(2) / file, place_.path("aside"));
    fs::create_symlink(std::string(300, 'x'), step_folder(2) / file);
    const auto before = snapshot(run());
    const ProgramEnd end = place_.run(short_training({"--resume", "auto", "--steps", "4"}));
    EXPECT_EQ(end.code, 3);
    EXPECT_THAT(end.err, AllOf(HasSubstr(file), HasSubstr(": File name too long; nothing was changed")));
    EXPECT_EQ(place_.run(short_training({"--run-dir", "other", "--resume", "run"})).code, 3);
    EXPECT_EQ(place_.run({"eval", "--checkpoint", "run"}).code, 3);
    EXPECT_EQ(snapshot(run()), before);
    fs::rename(place_.path("aside"), step_folder(2) / file);
  }
  EXPECT_EQ(place_.run(short_training({"--resume", "auto", "--steps", "4"})).code, 0);
}

TEST_F(ResumedDirectories, WhoseCheckpointsAreAllDamagedStartAgainOnlyWhereTheUserSaysSo) {
  ASSERT_EQ(place_.run(short_training({"--save-every-steps", "1"})).code, 0);
  fs::resize_file(step_folder(1) / "model.safetensors", 100);
  fs::resize_file(step_folder(2) / "model.safetensors", 100);
  const auto before = snapshot(run());
  const Words words = short_training({"--progress", "plain", "--resume"});
  for (const auto& [name, start] : ways_to_start(joined(words, {"auto"}))) {
    const ProgramEnd end = place_.run(start);
    EXPECT_EQ(end.code, 4) << name;
    EXPECT_THAT(end.err, AllOf(HasSubstr("run/checkpoints holds no valid checkpoint (passed over "),
                               HasSubstr("--resume auto-or-restart")));
    EXPECT_EQ(snapshot(run()), before) << name;
  }
  const ProgramEnd restart = place_.run(joined(words, {"auto-or-restart"}));
  EXPECT_EQ(restart.code, 0) << restart.err;
  EXPECT_THAT(restart.out, HasSubstr("no valid checkpoint in run/checkpoints: training from step 0"));
  EXPECT_EQ(tests::records_of(run() / "metrics.jsonl").size(), 3u) << "two steps and the evaluation, once";
  EXPECT_TRUE(fs::exists(run() / "checkpoints" / "abandoned-step-1" / "meta.json"));
  EXPECT_EQ(place_.run({"ckpt", "verify", "run"}).code, 0);
}

TEST_F(ResumedDirectories, NameTheirNewestAndBestWhereASaveWasKilledBeforeItsLinks) {
  ASSERT_EQ(place_.run(short_training({"--save-every-steps", "1"})).code, 0);
  const fs::path checkpoints = run() / "checkpoints";
  fs::remove(checkpoints / "latest");
  fs::create_symlink("step-1", checkpoints / "latest");
  fs::remove(checkpoints / "best");
  fs::remove(run() / "summary.json");
  const ProgramEnd end = place_.run(short_training({"--resume", "auto"}));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(fs::read_symlink(checkpoints / "latest"), "step-2");
  EXPECT_EQ(fs::read_symlink(checkpoints / "best"), "step-2");
}

TEST_F(ResumedDirectories, WithoutTheirConfigAreKnownByTheirCheckpoints) {
  ASSERT_EQ(place_.run(short_training({"--lr", "0.002"})).code, 0);
  for (const char* steps : {"2", "4"}) {
    for (const auto& entry : fs::directory_iterator(run()))
      if (entry.path().filename() != "checkpoints") fs::remove_all(entry.path());
    const ProgramEnd end =
        place_.run(short_training({"--lr", "0.002", "--resume", "auto", "--steps", steps, "--progress", "plain"}));
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.out, HasSubstr("resumed from run/checkpoints/step-2: 2 steps done"));
    EXPECT_THAT(end.out,
                HasSubstr(steps == std::string("2") ? "; no option changed (config.resolved.toml)"
                                                    : "; changed options: steps 2 -> 4 (config.resolved.toml)"));
    expect_config_is_accepted("run/config.resolved.toml");
  }
}

/// Also where only a checkpoint is left of the run, and by ranks.
TEST_F(ResumedDirectories, KeepNameAndTagsUnlessTheyAreGiven) {
  const auto resumed = [&](const char* steps, const Words& more = {}) {
    const ProgramEnd end =
        place_.run(joined(short_training({"--steps", steps, "--resume", "auto", "--progress", "plain"}), more));
    EXPECT_EQ(end.code, 0) << end.err;
    return end.out;
  };
  const auto known = [&] {
    const json run = tests::parse_json(place_.run({"runs", "show", "run", "--json"}).out).at("config");
    return std::pair(run.at("name").get<std::string>(), run.at("tags").get<std::string>());
  };
  ASSERT_EQ(place_.run(short_training({"--name", "first", "--tags", "a,b"})).code, 0);
  EXPECT_THAT(resumed("3"), HasSubstr("changed options: steps 2 -> 3 (config.resolved-2.toml)"));
  EXPECT_EQ(known(), std::pair(std::string("first"), std::string("a,b")));
  EXPECT_THAT(place_.run({"runs", "ls", ".", "--tag", "b"}).out, HasSubstr("run"));
  for (const auto& entry : fs::directory_iterator(run()))
    if (entry.path().filename() != "checkpoints") fs::remove_all(entry.path());
  resumed("4", {"--nprocs", "2", "--batch-size", "4"});
  EXPECT_EQ(known(), std::pair(std::string("first"), std::string("a,b")));
  EXPECT_THAT(resumed("5", {"--tags", "c"}), HasSubstr("tags a,b -> c"));
  EXPECT_EQ(known(), std::pair(std::string("first"), std::string("c")));
  resumed("6", {"--run-dir", "other", "--resume", "run"});
  EXPECT_THAT(tests::text_of(place_.path("other/config.resolved.toml")), HasSubstr("name = \"\"")) << "another run";
}

TEST_F(ResumedDirectories, DoNotWaitForAFifo) {
  const auto replace_by_fifo = [&](const fs::path& file) {
    fs::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  };
  const Words words = short_training({"--resume", "auto", "--save-every-steps", "1"});
  ASSERT_EQ(place_.run(words).code, 0);
  replace_by_fifo(step_folder(2) / "model.safetensors");
  replace_by_fifo(run() / "summary.json");
  replace_by_fifo(run() / "config.resolved.toml");
  const ProgramEnd end = place_.run(words);
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("step-2/model.safetensors is not a regular file"));
  EXPECT_EQ(summary_in(run()).at("outcome"), "finished");
  replace_by_fifo(run() / "metrics.jsonl");
  EXPECT_EQ(place_.run(joined(words, {"--steps", "4"})).code, 3);
}

TEST_F(ResumedDirectories, TellTheOutcomeOfARunThatDiverged) {
  const ProgramEnd end = place_.run(short_training({"--optimizer", "sgd", "--lr", "1e12", "--steps", "20"}));
  EXPECT_EQ(end.code, 5);
  const json summary = summary_in(run());
  EXPECT_EQ(summary.at("outcome"), "diverged");
  EXPECT_THAT(summary.at("reason"), HasSubstr("the gradients of step "));
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

/// Ctrl-C prints a command that goes on where the run stopped, however it was started and whatever its directory is
/// called.
TEST_F(ResumedDirectories, AreResumedByTheCommandThatAnInterruptPrints) {
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
