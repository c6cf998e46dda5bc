// SPDX-License-Identifier: Apache-2.0
// Single file operations that fail (tests/support/file_faults): what scripts/fault_soak.sh --file-operations has found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/sanitizer.h"
#include "tests/train/app/commands/support/file_faults.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;
using tests::launched;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;
using tests::Workplace;

class FileFaults : public ::testing::Test {
  void SetUp() override {
    if (!tests::kSanitizer.empty()) GTEST_SKIP() << "a sanitizer has to be the first library that is loaded";
  }
};

/// Runs gradring; at `operation`, "PROCESS OPERATION PATH NTH" in the workplace, comes `fault`.
ProgramEnd run_with(const std::string& fault, const std::string& operation, const Workplace& place,
                    const Words& words) {
  Workplace::Variables variables = tests::file_faults(place, fs::canonical(place.path(".")), "hit");
  variables.emplace_back("GRADRING_FILE_FAULT", operation + " " + fault);
  const ProgramEnd end = place.run(words, variables);
  EXPECT_TRUE(fs::remove(place.path("hit"))) << "there was no " << operation;
  return end;
}

/// Folders of launchers in the workplace, which is their TMPDIR.
std::ptrdiff_t run_folders(const Workplace& place) {
  const std::vector<std::string> left = place.left();
  return std::ranges::count_if(left, [](const std::string& name) { return name.starts_with("gradring-run-"); });
}

TEST_F(FileFaults, ARunDirectoryThatCannotBeLookedAtIsNoUsageError) {
  for (const std::string operation : {"stat run 1", "stat run/.lock 3", "open run/.lock 1", "pread run/.lock 3"}) {
    const Workplace place;
    const ProgramEnd end = run_with("EIO", "launcher " + operation, place, short_training());
    EXPECT_EQ(end.code, 3) << operation << ": " << end.err;
    EXPECT_THAT(end.err, HasSubstr("Input/output error")) << operation;
  }
}

TEST_F(FileFaults, AStoreThatCannotBeLookedAtIsNoUsageError) {
  const Workplace place;
  const ProgramEnd end = run_with("EIO", "rank1 stat gradring-run-*/store 1", place, launched(short_training()));
  EXPECT_EQ(end.code, 3) << end.err;
  EXPECT_THAT(end.err, HasSubstr("the store cannot look at "));
}

/// Which may be whole: the launcher starts ranks again after 3, not after 4.
TEST_F(FileFaults, ADataSetThatCannotBeReadIsNotTakenForABadOne) {
  for (const std::string operation : {"stat data/train-images-idx3-ubyte 1", "open data/train-images-idx3-ubyte 1",
                                      "read data/t10k-images-idx3-ubyte 2"}) {
    const Workplace place;
    const ProgramEnd end = run_with("EIO", "launcher " + operation, place, short_training());
    EXPECT_EQ(end.code, 3) << operation << ": " << end.err;
    EXPECT_THAT(end.err, HasSubstr("check its disk: Input/output error")) << operation;
  }
}

TEST_F(FileFaults, ADiskThatIsFullForAMomentCostsNoMetricsAndNoLog) {
  const Workplace undisturbed;
  ASSERT_EQ(undisturbed.run(short_training({"--steps", "9"})).code, 0);
  const std::size_t records = tests::records_of(undisturbed.path("run/metrics.jsonl")).size();
  ASSERT_GE(records, 9u);
  for (const std::string file : {"run/metrics.jsonl", "run/logs/rank_0.log"}) {
    const Workplace place;
    const ProgramEnd end = run_with("ENOSPC", "launcher write " + file + " 2", place, short_training({"--steps", "9"}));
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.err, HasSubstr(file + ": No space left on device"));
    EXPECT_THAT(end.err, HasSubstr("training continues"));
    EXPECT_EQ(tests::records_of(place.path("run/metrics.jsonl")).size(), records) << "steps and evaluations";
    EXPECT_TRUE(fs::exists(place.path("run/checkpoints/step-9")));
  }
}

/// CIFS before Linux 4.17, vboxsf and some file systems of FUSE.
TEST_F(FileFaults, AFileSystemThatCannotSyncFoldersIsUsed) {
  for (const std::string operation : {"fsync run 1", "fsync run/checkpoints 1", "fsync run/checkpoints 2"}) {
    const Workplace place;
    const ProgramEnd end = run_with("EINVAL", "launcher " + operation, place, short_training());
    EXPECT_EQ(end.code, 0) << operation << ": " << end.err;
    EXPECT_THAT(end.err, Not(HasSubstr("Invalid argument"))) << operation;
  }
}

TEST_F(FileFaults, AShortWriteOfTheLockIsContinued) {
  const Workplace place;
  const ProgramEnd end = run_with("half", "launcher write run/.lock 1", place, short_training());
  EXPECT_EQ(end.code, 0) << end.err;
}

TEST_F(FileFaults, ARunWhoseRemovalIsKilledCanBeRemovedAgain) {
  const Workplace place;
  const Words remove = {"runs", "rm", "run", "--yes"};
  ASSERT_EQ(place.run(short_training({"--log", "tensorboard", "--save-every-steps", "1"})).code, 0);
  const auto copy = [&](const char* from, const char* to) {
    fs::copy(place.path(from), place.path(to), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  };
  copy("run", "whole");
  ASSERT_EQ(place.run(remove, tests::file_faults(place, fs::canonical(place.path(".")), "record")).code, 0);
  int removals = 0;
  for (const std::string& line : tests::lines_of(place.path("record"))) {
    const std::string operation = line.substr(0, line.rfind(' '));
    if (operation.find(" unlink ") == std::string::npos) continue;
    ++removals;
    copy("whole", "run");
    EXPECT_EQ(run_with("kill-before", operation, place, remove).code, 128 + SIGKILL);
    const ProgramEnd again = place.run(remove);
    EXPECT_EQ(again.code, 0) << operation << ": " << again.err;
    EXPECT_FALSE(fs::exists(place.path("run"))) << operation;
  }
  EXPECT_GE(removals, 15);
}

/// Of a folder of which only a part was removed.
TEST_F(FileFaults, AFolderThatALauncherLeavesIsRemovedByTheNext) {
  for (const char* fault : {"EIO", "kill-before"}) {
    for (const char* operation :
         {"launcher readdir gradring-run-*/store 1", "launcher unlink gradring-run-*/store 1"}) {
      const Workplace place;
      run_with(fault, operation, place, launched(short_training()));
      EXPECT_EQ(place.run(launched(short_training({"--run-dir", "other"}))).code, 0);
      EXPECT_EQ(run_folders(place), 0) << fault << " at " << operation;
    }
  }
}

}  // namespace
}  // namespace gradring
