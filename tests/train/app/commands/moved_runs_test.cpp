// SPDX-License-Identifier: Apache-2.0
// While a run writes a file, its directory is moved or removed, and its path becomes that of another run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sanitizer.h"
#include "tests/train/app/commands/support/file_faults.h"
#include "tests/train/app/commands/support/run_directories.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::joined;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;

/// Two epochs of 8 steps, with checkpoints of steps 4, 8 (the first with a score), 12 and 16.
Words two_epochs(const Words& more = {}) {
  return short_training(
      joined({"--epochs", "2", "--steps", "16", "--save-every-steps", "4", "--keep-last", "1"}, more));
}

/// How often `part` occurs.
std::ptrdiff_t count_of(const std::string& part, const std::string& text) {
  std::ptrdiff_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Each entry below a folder: a hash of a file, the target of a link.
std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  const auto hash = [](const std::string& bytes) { return std::to_string(std::hash<std::string>()(bytes)); };
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    contents[entry.path().lexically_relative(folder)] = entry.is_symlink()        ? fs::read_symlink(entry).string()
                                                        : entry.is_regular_file() ? hash(tests::text_of(entry))
                                                                                  : "";
  return contents;
}

constexpr const char* kMoved = "mv run old && cp -r other run";
constexpr const char* kRemoved = "rm -rf run && cp -r other run";

/// A workplace with another finished run, `other`.
class MovedRuns : public tests::RunDirectories {
 protected:
  void SetUp() override {
    if (!tests::kSanitizer.empty()) GTEST_SKIP() << "a sanitizer has to be the first library that is loaded";
    ASSERT_EQ(place_.run(two_epochs({"--run-dir", "other", "--seed", "7"})).code, 0);
    theirs_ = contents_of(place_.path("other"));
  }

  /// Runs gradring; just before `operation`, "PROCESS OPERATION PATH NTH" in the workplace, comes the shell `command`.
  ProgramEnd run_with(const std::string& command, const std::string& operation, const Words& words) const {
    auto variables = tests::file_faults(place_, fs::canonical(place_.path(".")), "hit");
    variables.emplace_back("GRADRING_FILE_FAULT", operation + " command");
    variables.emplace_back("GRADRING_FILE_FAULT_COMMAND", "cd '" + place_.path(".").string() + "' && " + command);
    const ProgramEnd end = place_.run(words, variables);
    EXPECT_TRUE(fs::remove(place_.path("hit"))) << "there was no " << operation;
    return end;
  }

  ProgramEnd expect_goes_on(const std::string& operation) const {
    SCOPED_TRACE(operation);
    ProgramEnd end = run_with(kMoved, "launcher " + operation, two_epochs());
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(contents_of(run()), theirs_);
    EXPECT_EQ(summary_in(old()).at("steps"), 16);
    EXPECT_EQ(tests::records_of(old() / "metrics.jsonl").size(), 18u) << "steps and evaluations";
    EXPECT_EQ(fs::read_symlink(old() / "checkpoints" / "latest"), "step-16");
    EXPECT_TRUE(fs::exists(old() / "checkpoints" / fs::read_symlink(old() / "checkpoints" / "best") / "meta.json"));
    EXPECT_FALSE(fs::exists(old() / "checkpoints" / "step-4"));
    EXPECT_FALSE(fs::exists(old() / ".lock"));
    clean();
    return end;
  }

  void clean() const {
    for (const char* name : {"run", "old"}) fs::remove_all(place_.path(name));
  }
  fs::path old() const { return place_.path("old"); }

  std::map<std::string, std::string> theirs_;
};

/// Of a save, its links, what it prunes; the metrics.
const std::vector<std::string> kDuringTheRun = {
    "mkdir run/checkpoints/step-8.partial 1",   "rename run/checkpoints/step-8 1",
    "rename run/checkpoints/latest 2",          "rename run/checkpoints/best 1",
    "rename run/checkpoints/step-4.removing 1", "write run/metrics.jsonl 3",
};

const std::vector<std::string> kAtItsEnd = {
    "create run/summary.json.tmp 1",
    "rename run/summary.json 1",
    "unlink run/.lock 1",
};

TEST_F(MovedRuns, GoOnInTheMovedDirectory) {
  for (const std::string& operation : kDuringTheRun) {
    const ProgramEnd end = expect_goes_on(operation);
    EXPECT_EQ(count_of("the run directory run was moved to old: the run continues there", end.err), 1) << operation;
  }
  for (const std::string& operation : kAtItsEnd) expect_goes_on(operation);
}

TEST_F(MovedRuns, EndAtTheNextSaveIfTheDirectoryIsRemoved) {
  for (std::size_t i = 0; i < kDuringTheRun.size(); i += 2) {
    const std::string& operation = kDuringTheRun[i];
    SCOPED_TRACE(operation);
    const ProgramEnd end = run_with(kRemoved, "launcher " + operation, two_epochs());
    EXPECT_EQ(end.code, 3) << end.err;
    EXPECT_THAT(end.err, HasSubstr("run was removed: nothing more of this run can be saved"));
    EXPECT_EQ(contents_of(run()), theirs_);
    clean();
  }
  for (const char* operation : {"create run/summary.json.tmp 1", "rename run/summary.json 1"}) {
    EXPECT_EQ(run_with(kRemoved, std::string("launcher ") + operation, two_epochs()).code, 3) << operation;
    EXPECT_EQ(contents_of(run()), theirs_) << operation;
    clean();
  }
}

TEST_F(MovedRuns, EndAtTheNextSaveIfAnotherRunHasTheirDirectory) {
  const std::string lock = R"({"pid":7,"host":"elsewhere","started":"","launch_folder":""})";
  const ProgramEnd end =
      run_with("rm run/.lock && echo '" + lock + "' > run/.lock", "launcher write run/metrics.jsonl 6", two_epochs());
  EXPECT_EQ(end.code, 3);
  EXPECT_THAT(end.err, HasSubstr("run belongs to another run now, of process 7 on host elsewhere"));
  EXPECT_EQ(fs::read_symlink(run() / "checkpoints" / "latest"), "step-4");
  EXPECT_FALSE(fs::exists(run() / "summary.json"));
  EXPECT_EQ(tests::text_of(run() / ".lock"), lock + "\n");
  EXPECT_THAT(tests::text_of(run() / "metrics.jsonl"), Not(HasSubstr("\"end\"")));
}

/// The other run takes place meanwhile, and is what a person asks about then.
TEST_F(MovedRuns, DoNotChangeWhatIsTrainedAtTheirPath) {
  const std::string second = std::string("mv run old && '") + GRADRING_BINARY +
                             "' train --dataset mnist --data-dir data --batch-size 8 --steps 6 --save-every-steps 2 "
                             "--keep-last 0 --device cpu --progress none --run-dir run && cp -r run second";
  const ProgramEnd end = run_with(second, "launcher mkdir run/checkpoints/step-8.partial 1",
                                  two_epochs({"--log", "tensorboard", "--trace", "run/trace.json"}));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(contents_of(run()), contents_of(place_.path("second")));
  EXPECT_TRUE(fs::exists(old() / "trace.json"));
  EXPECT_EQ(place_.run({"ckpt", "verify", "run"}).code, 0);
  EXPECT_EQ(summary_in(run()).at("steps"), 6);
}

TEST_F(MovedRuns, PrintTheCommandThatResumesThemWhereTheyAre) {
  const ProgramEnd end = run_with("mv run old && cp -r other run && kill -TERM $PPID",
                                  "launcher mkdir run/checkpoints/step-8.partial 1", two_epochs());
  EXPECT_EQ(end.code, 143);
  EXPECT_THAT(end.err, HasSubstr("--run-dir old --resume auto"));
  EXPECT_EQ(summary_in(old()).at("outcome"), "interrupted");
  EXPECT_EQ(contents_of(run()), theirs_);
}

TEST_F(MovedRuns, WriteTheLogsOfAllRanksInTheMovedDirectory) {
  const Words launched = tests::launched(two_epochs());
  const ProgramEnd end = run_with(kMoved, "rank1 create run/logs/rank_1.log 1", launched);
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(contents_of(run()), theirs_);
  EXPECT_THAT(tests::text_of(old() / "logs" / "rank_1.log"), HasSubstr("rank 1 of 2"));
}

TEST_F(MovedRuns, EndIfAnotherRankFindsAnotherDirectory) {
  const Words launched = tests::launched(two_epochs());
  const ProgramEnd end = run_with(kMoved, "rank1 open run 1", launched);
  EXPECT_EQ(end.code, 3) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr("rank 1"), HasSubstr("run is not the one that rank 0 has locked")));
  EXPECT_EQ(contents_of(run()), theirs_);
}

TEST_F(MovedRuns, AreNotStartedAgainInAnotherDirectory) {
  const Words launched = joined({"launch", "--nproc-per-node", "2", "--max-restarts", "1"},
                                two_epochs({"--resume", "auto", "--inject", "kill:rank=1,step=7"}));
  for (const char* command : {kMoved, "mv run old"}) {
    SCOPED_TRACE(command);
    const ProgramEnd end = run_with(command, "rank0 write run/metrics.jsonl 5", launched);
    EXPECT_EQ(end.code, 3) << end.err;
    EXPECT_THAT(end.err, HasSubstr("is not the directory in which this run has begun"));
    EXPECT_TRUE(fs::exists(old() / "metrics.jsonl"));
    if (command == kMoved)
      EXPECT_EQ(contents_of(run()), theirs_);
    else
      EXPECT_FALSE(fs::exists(run()));
    clean();
  }
}

TEST_F(MovedRuns, BeginRemovedAndCutMetricsAnewWithTheirHeader) {
  for (const auto& [command, what] : {std::pair("rm run/metrics.jsonl", "removed"), {": > run/metrics.jsonl", "cut"}}) {
    SCOPED_TRACE(what);
    const ProgramEnd end = run_with(command, "launcher stat run/metrics.jsonl 9", two_epochs());
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(count_of(std::string("metrics.jsonl was ") + what + " during the run: it is begun anew", end.err), 1);
    const std::string metrics = tests::text_of(run() / "metrics.jsonl");
    EXPECT_EQ(count_of(R"("event":"header")", metrics), 1);
    EXPECT_EQ(metrics.find(R"({"event":"header")"), 0u);
    EXPECT_EQ(place_.run({"runs", "show", "run"}).err, "");
    clean();
  }
}

/// After gradients that are not finite, ranks read the newest checkpoint again.
TEST_F(MovedRuns, GoBackToTheirOwnCheckpoint) {
  const Words words = two_epochs({"--on-nan", "rollback", "--inject", "nan:rank=0,step=11"});
  ASSERT_EQ(place_.run(words).code, 0);
  const auto weights = summary_in(run()).at("parameters_sha256");
  clean();
  const ProgramEnd end = run_with(kMoved, "launcher write run/metrics.jsonl 12", words);
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(summary_in(old()).at("parameters_sha256"), weights);
  EXPECT_EQ(contents_of(run()), theirs_);
}

}  // namespace
}  // namespace gradring
