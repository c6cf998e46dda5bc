// SPDX-License-Identifier: Apache-2.0
// Trainings that begin well and fail: the exit code, one message, and files that are whole as far as they go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;
using tests::Workplace;

std::ptrdiff_t lines_in(const std::string& text) { return std::ranges::count(text, '\n'); }

/// metrics.jsonl holds whole objects only, and the summary says that the run did not finish.
void expect_honest_files(const Workplace& place, const std::string& outcome) {
  const auto summary = tests::parse_json(tests::text_of(place.path("run/summary.json")));
  EXPECT_EQ(summary.at("outcome"), outcome);
  EXPECT_FALSE(summary.contains("accuracy"));
  for (const std::string& line : tests::lines_of(place.path("run/metrics.jsonl")))
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
}

TEST(FailingRun, ThatDivergesSaysSo) {
  const Workplace place;
  const Words diverging = {"--optimizer", "sgd", "--lr", "1e12", "--steps", "20"};
  const ProgramEnd end = place.run(short_training(diverging));
  EXPECT_EQ(end.code, 5);
  EXPECT_THAT(end.err,
              AllOf(HasSubstr("gradring train: the gradients of step "), HasSubstr("lower --lr (now 1000000000000)")));
  EXPECT_EQ(lines_in(end.err), 1) << end.err;
  EXPECT_THAT(tests::text_of(place.path("run/logs/rank_0.log")), HasSubstr("training ended: the gradients of step "));
  expect_honest_files(place, "diverged");
}

TEST(FailingRun, ThatDivergesInItsLastStepIsNoSuccess) {
  const Workplace place;
  const ProgramEnd end = place.run(short_training({"--optimizer", "sgd", "--lr", "1e20", "--steps", "1"}));
  EXPECT_EQ(end.code, 5);
  EXPECT_THAT(end.err, HasSubstr("the test loss after "));
  expect_honest_files(place, "diverged");
}

TEST(FailingRun, ThatSkippedEveryStepIsNoSuccessAndCanBeResumed) {
  const Workplace place;
  const auto run = [&](const char* steps) {
    return place.run(
        short_training({"--precision", "fp16", "--loss-scale", "3e38", "--steps", steps, "--resume", "auto"}));
  };
  const ProgramEnd end = run("3");
  EXPECT_EQ(end.code, 5);
  EXPECT_THAT(end.err, AllOf(HasSubstr("no weight has changed: the gradients of all 3 steps were not finite"),
                             HasSubstr("the loss scale fell to 3.75e+37: lower --loss-scale, or resume")));
  expect_honest_files(place, "diverged");
  EXPECT_EQ(run("200").code, 0) << "the scale went on falling";
}

TEST(FailingRun, ThatDivergesOnSeveralRanksSaysSoOnce) {
  const Workplace place;
  const ProgramEnd end =
      place.run(short_training({"--optimizer", "sgd", "--lr", "1e12", "--steps", "20", "--nprocs", "2"}));
  EXPECT_EQ(end.code, 5);
  EXPECT_EQ(tests::reasons_in(end.err), 1) << end.err;
  EXPECT_THAT(end.err, HasSubstr("the gradients of step "));
  expect_honest_files(place, "diverged");
}

TEST(FailingRun, OfWhichOneRankIsKilledNamesIt) {
  const Workplace place;
  const auto rank = [&](const std::string& number) {
    return place.gradring(short_training({"--steps", "1000000"}), {{"RANK", number}, {"WORLD_SIZE", "2"}});
  };
  tests::RunningProgram first(rank("0"));
  tests::RunningProgram second(rank("1"));
  const auto trains = [&] { return !tests::records_of(place.path("run/metrics.jsonl")).empty(); };
  for (int i = 0; i < 6000 && !trains(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(trains());
  ::kill(second.pid(), SIGKILL);
  EXPECT_EQ(second.wait().code, 128 + SIGKILL);
  const ProgramEnd end = first.wait();
  EXPECT_EQ(end.code, 161);
  EXPECT_EQ(lines_in(end.err), 1) << end.err;
  EXPECT_THAT(end.err, HasSubstr("rank 1"));
  expect_honest_files(place, "failed");
}

/// A shell script in a mount namespace of its own, where `disk` is a file system of `pages` pages and `inodes` files and
/// folders; it ends with gradring's code, after a listing of the disk. Nothing of it outlives the script.
tests::ProgramSpec on_small_disk(const Workplace& place, int pages, int inodes, const Words& words) {
  std::filesystem::create_directory(place.path("disk"));
  const std::string options =
      "size=" + std::to_string(pages * ::sysconf(_SC_PAGESIZE)) + ",nr_inodes=" + std::to_string(inodes);
  const std::string script = "mount -t tmpfs -o " + options +
                             " tmpfs disk || exit 99; \"$@\"; code=$?; find disk; cat " +
                             "disk/run/metrics.jsonl 2> /dev/null; exit $code";
  tests::ProgramSpec spec = place.gradring(words);
  Words command = {"/usr/bin/unshare", "--map-root-user", "--mount", "/bin/sh", "-c", script, "sh"};
  command.insert(command.end(), spec.command.begin(), spec.command.end());
  spec.command = command;
  return spec;
}

bool can_mount(const Workplace& place) {
  tests::ProgramSpec spec = on_small_disk(place, 1, 2, {});
  spec.command.resize(7);
  spec.command.push_back("true");
  return tests::run_program(spec).code == 0;
}

TEST(FailingRun, OnAFullDiskLeavesNoHalfRunDirectory) {
  const Workplace place;
  if (!can_mount(place)) GTEST_SKIP() << "this user may not mount a small disk in a namespace";
  for (const int inodes : {1, 2, 3, 4}) {  // no room for the run directory, its lock, logs/, the config
    const ProgramEnd end =
        tests::run_program(on_small_disk(place, 8, inodes, short_training({"--run-dir", "disk/run"})));
    EXPECT_EQ(end.code, 3);
    EXPECT_EQ(end.out, "disk\n") << "what is left";
    EXPECT_THAT(end.err, AllOf(HasSubstr("No space left on device"), HasSubstr("--run-dir")));
    EXPECT_EQ(lines_in(end.err), 1) << end.err;
  }
}

TEST(FailingRun, ThatFillsTheDiskLeavesWholeLines) {
  const Workplace place;
  if (!can_mount(place)) GTEST_SKIP() << "this user may not mount a small disk in a namespace";
  const ProgramEnd end = tests::run_program(on_small_disk(
      place, 4, 100, short_training({"--run-dir", "disk/run", "--steps", "100", "--on-save-error", "continue"})));
  EXPECT_EQ(end.code, 3);
  EXPECT_THAT(end.err, AllOf(HasSubstr("metrics.jsonl: No space left on device"), HasSubstr("free some space")));
  EXPECT_THAT(end.out, Not(HasSubstr("summary.json")));
  const std::string metrics = end.out.substr(end.out.find('{'));
  EXPECT_GT(lines_in(metrics), 2);
  for (std::istringstream stream(metrics); stream.peek() != EOF;) {
    std::string line;
    std::getline(stream, line);
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
}

TEST(FailingRun, GoesOnWhereNoCheckpointHasRoom) {
  const Workplace place;
  if (!can_mount(place)) GTEST_SKIP() << "this user may not mount a small disk in a namespace";
  const ProgramEnd end =
      tests::run_program(on_small_disk(place, 600, 100,
                                       short_training({"--run-dir", "disk/run", "--steps", "20", "--save-every-steps",
                                                       "3", "--on-save-error", "continue"})));
  EXPECT_EQ(end.code, 3) << "the last one is missing";
  EXPECT_THAT(end.err, AllOf(HasSubstr("are free"), HasSubstr("No space left on device")));
  const std::string metrics = end.out.substr(end.out.find('{'));
  EXPECT_THAT(metrics, HasSubstr("\"step\":20,"));
  EXPECT_THAT(end.out, Not(HasSubstr(".partial")));
}

}  // namespace
}  // namespace gradring
