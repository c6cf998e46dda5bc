// SPDX-License-Identifier: Apache-2.0
// Run directories by the program that was built: who may write into one.
#include "tests/train/app/commands/support/run_directories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <memory>
#include <vector>

namespace gradring {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using tests::ProgramEnd;
using tests::RunningProgram;
using tests::short_training;
using tests::ways_to_start;
using tests::Words;
using RunDirectories = tests::RunDirectories;

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

/// A run directory is never a folder that only contains the run which is resumed.
TEST_F(RunDirectories, OfUsersAreNotTakenForThatOfARunInside) {
  ASSERT_EQ(place_.run(short_training({"--run-dir", "mine/run"})).code, 0);
  std::ofstream(place_.path("mine/summary.json")) << "precious";
  const auto before = snapshot(place_.path("mine"));
  for (const char* from : {"mine/run", "mine/run/checkpoints/step-2"}) {
    const ProgramEnd end = place_.run(short_training({"--run-dir", "mine", "--resume", from, "--steps", "4"}));
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.err, HasSubstr("expected an empty directory: choose another"));
    EXPECT_TRUE(snapshot(place_.path("mine")) == before) << "a file has changed";
  }
}

}  // namespace
}  // namespace gradring
