// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "tests/data/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/support/faulty_files.h"
#include "tests/train/support/sealed_meta.h"
#include "tests/train/support/text_of.h"
#include "train/core/config/resolve.h"
#include "train/core/setup/run_directory.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/tensor_file.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::FaultyFiles;
using tests::message_of;
namespace fs = std::filesystem;

TensorRecord tensor() {
  TensorRecord record;
  record.name = "w";
  record.shape = {2};
  record.bytes.resize(8);
  return record;
}

class StartTest : public ::testing::Test {
 protected:
  void make_run() { make_run_dir({.path = run_, .config = to_resolved_toml({})}); }
  void save(std::int64_t step) {
    const auto problems = CheckpointDirectory(files_, checkpoints_of(run_)).save({.step = step, .model = {tensor()}});
    EXPECT_TRUE(problems.empty());
  }
  fs::path step_folder(int step) const { return checkpoints_of(run_) / ("step-" + std::to_string(step)); }
  Start start(const std::string& resume, const fs::path& run_dir, const std::string& weights = "") {
    TrainConfig config;
    config.resume = resume;
    config.weights = weights;
    return find_start(config, run_dir, files_);
  }

  tests::TempFolder folder_;
  fs::path run_ = folder_.path() / "run";
  PosixFileSystem files_;
};

TEST_F(StartTest, NoneWantsANewRunDirectory) {
  EXPECT_FALSE(start("none", run_).in_place);
  make_run();
  EXPECT_THAT(message_of<UsageError>([&] { start("none", run_); }), HasSubstr("--resume auto"));
}

TEST_F(StartTest, AutoBeginsARunAnewThatWasKilledWhileItsDirectoryWasMade) {
  fs::create_directories(run_ / "logs");
  std::ofstream(run_ / "config.resolved.toml.tmp") << "half a li";
  EXPECT_FALSE(start("auto", run_).in_place);
  EXPECT_TRUE(fs::exists(run_ / "config.resolved.toml.tmp")) << "a look changes nothing";
  fs::create_symlink(run_, folder_.path() / "link");
  EXPECT_FALSE(start("auto", folder_.path() / "link").in_place) << "a link to it is as good";
  EXPECT_TRUE(fs::is_symlink(folder_.path() / "link"));

  fs::create_directories(run_ / "logs");
  std::ofstream(run_ / "logs" / "rank_0.log") << "somebody's";
  EXPECT_THROW(start("auto", run_), UsageError);
  EXPECT_TRUE(fs::exists(run_ / "logs" / "rank_0.log"));
}

TEST_F(StartTest, TakesAnEmptyDirectoryWhateverItResumes) {
  make_run();
  save(3);
  const fs::path empty = folder_.path() / "empty";
  fs::create_directory(empty);
  EXPECT_FALSE(start("none", empty).in_place);
  EXPECT_FALSE(start("auto", empty).in_place);
  const Start elsewhere = start(run_, empty);
  EXPECT_FALSE(elsewhere.in_place);
  EXPECT_EQ(elsewhere.resume->checkpoint.step, 3);
}

TEST_F(StartTest, KnowsNoDirectoryWhereItsNameIsGenerated) {
  make_run();
  save(3);
  TrainConfig config;
  EXPECT_FALSE(find_start(config, std::nullopt, files_).in_place);
  config.resume = run_;
  const Start found = find_start(config, std::nullopt, files_);
  EXPECT_FALSE(found.in_place);
  EXPECT_EQ(found.resume->checkpoint.step, 3);
}

TEST_F(StartTest, AutoBeginsARunThatIsNotThereAndGoesOnWithOneThatIs) {
  const Start fresh = start("auto", run_);
  EXPECT_FALSE(fresh.in_place || fresh.resume);
  make_run();
  const Start empty = start("auto", run_);
  EXPECT_TRUE(empty.in_place) << "it was stopped before its first checkpoint";
  EXPECT_FALSE(empty.resume);
  save(3);
  save(12);
  const Start found = start("auto", run_);
  EXPECT_TRUE(found.in_place);
  ASSERT_TRUE(found.resume);
  EXPECT_EQ(found.resume->checkpoint.step, 12);
  EXPECT_EQ(found.resume->from, step_folder(12));
  EXPECT_TRUE(found.remarks.empty());
}

TEST_F(StartTest, AutoPassesOverWhatIsDamagedAndSaysSo) {
  make_run();
  save(3);
  save(12);
  fs::resize_file(step_folder(12) / kModelFile, 20);
  const Start found = start("auto", run_);
  EXPECT_EQ(found.resume->checkpoint.step, 3);
  EXPECT_THAT(found.remarks,
              ElementsAre(AllOf(HasSubstr("passed over"), HasSubstr("step-12"), HasSubstr("in a file of 20"))));
}

TEST_F(StartTest, AutoTakesNoReadErrorForDamage) {
  make_run();
  save(3);
  save(12);
  TrainConfig config;
  config.resume = "auto";
  FaultyFiles sound(files_, {});
  EXPECT_EQ(find_start(config, run_, sound).resume->checkpoint.step, 12);
  int errors = 0;
  for (int call = 1; call <= sound.calls(); ++call)
    for (int code : {EIO, ESTALE, EMFILE, EACCES}) {
      SCOPED_TRACE(testing::Message() << "call " << call << ", " << std::generic_category().message(code));
      FaultyFiles files(files_, {.kind = tests::Fault::Kind::error, .at_call = call, .code = code});
      try {
        EXPECT_EQ(find_start(config, run_, files).resume->checkpoint.step, 12);
      } catch (const EnvironmentError& error) {
        EXPECT_THAT(error.what(),
                    AllOf(HasSubstr(std::generic_category().message(code)), HasSubstr("nothing was changed")));
        ++errors;
      }
    }
  EXPECT_GT(errors, 4 * 15) << "the files are verified, then read";
}

TEST_F(StartTest, AutoGivesUpNoTrainingWhoseCheckpointsAreAllDamaged) {
  make_run();
  save(3);
  save(12);
  fs::resize_file(step_folder(3) / kMetaFile, 20);
  fs::remove(step_folder(12) / kModelFile);
  EXPECT_THAT(message_of<CheckpointError>([&] { start("auto", run_); }),
              AllOf(HasSubstr("run/checkpoints holds no valid checkpoint (passed over "), HasSubstr("step-12"),
                    HasSubstr("step-3"), HasSubstr("nothing was changed"), HasSubstr("--resume auto-or-restart")));
  const Start restart = start("auto-or-restart", run_);
  EXPECT_TRUE(restart.in_place);
  EXPECT_FALSE(restart.resume);
  EXPECT_EQ(restart.remarks.size(), 2u);
  save(20);
  EXPECT_EQ(start("auto-or-restart", run_).resume->checkpoint.step, 20) << "with a valid one, it is auto";
}

TEST_F(StartTest, AutoBeginsARunAnewThatWasKilledInItsFirstSave) {
  make_run();
  fs::create_directories(checkpoints_of(run_) / "step-3.partial");
  const Start fresh = start("auto", run_);
  EXPECT_TRUE(fresh.in_place);
  EXPECT_FALSE(fresh.resume);
}

TEST_F(StartTest, ARunWhoseConfigWasRemovedIsKnownByItsCheckpoints) {
  make_run();
  save(3);
  fs::remove(run_ / "config.resolved.toml");
  for (const std::string& resume : {std::string("auto"), step_folder(3).string()}) {
    const Start found = start(resume, run_);
    EXPECT_TRUE(found.in_place);
    EXPECT_EQ(found.resume->checkpoint.step, 3);
  }
  EXPECT_THAT(message_of<UsageError>([&] { start("none", run_); }), HasSubstr("holds a run: resume it"));
  fs::remove(step_folder(3) / kMetaFile);
  EXPECT_THAT(message_of<UsageError>([&] { start("auto", run_); }), HasSubstr("is not a run directory"))
      << "another program may have made such a folder";
}

TEST_F(StartTest, AutoStaysOutOfFoldersThatAreNoRuns) {
  fs::create_directory(run_);
  std::ofstream(run_ / "thesis.tex") << "ours";
  EXPECT_THAT(message_of<UsageError>([&] { start("auto", run_); }), HasSubstr("is not a run directory"));
  EXPECT_TRUE(fs::exists(run_ / "thesis.tex"));
}

TEST_F(StartTest, ARunIsNamedByItsFolderItsCheckpointsOrOneOfThem) {
  make_run();
  save(3);
  save(12);
  const fs::path elsewhere = folder_.path() / "elsewhere";
  for (const fs::path& path : {run_, checkpoints_of(run_), checkpoints_of(run_) / "latest", step_folder(12)}) {
    const Start found = start(path, elsewhere);
    EXPECT_EQ(found.resume->checkpoint.step, 12) << path;
    EXPECT_FALSE(found.in_place);
  }
  const Start back = start(step_folder(3), run_);
  EXPECT_EQ(back.resume->checkpoint.step, 3);
  EXPECT_TRUE(back.in_place) << "it is the run's own";
  fs::create_directories(elsewhere / "other");
  EXPECT_THROW(start(run_, elsewhere), UsageError);
}

/// A run that started from step-3 of another run.
class StartFromAnotherRun : public StartTest {
 protected:
  StartFromAnotherRun() {
    make_run();
    save(3);
    make_run_dir({.path = second_, .config = source_line(step_folder(3)) + to_resolved_toml({})});
  }
  void save_in_second(std::int64_t step) {
    const Checkpoint checkpoint{.step = step, .model = {tensor()}};
    EXPECT_TRUE(CheckpointDirectory(files_, checkpoints_of(second_)).save(checkpoint).empty());
  }
  Start restart(const std::string& resume) {
    TrainConfig config;
    config.resume = resume;
    return find_start(config, second_, files_, true);
  }

  fs::path second_ = folder_.path() / "second \"run\"";
};

TEST_F(StartFromAnotherRun, IsRecorded) {
  EXPECT_EQ(recorded_source(files_, second_), step_folder(3));
  EXPECT_EQ(recorded_source(files_, run_), std::nullopt);
  for (const char* text :
       {"", "# Resumed from ", "# Resumed from \"half", "# Resumed from 3\n", "# Resumed from \"\"\n"}) {
    std::ofstream(second_ / "config.resolved.toml") << text;
    EXPECT_EQ(recorded_source(files_, second_), std::nullopt) << text;
  }
  fs::remove(second_ / "config.resolved.toml");
  EXPECT_EQ(recorded_source(files_, second_), std::nullopt);
}

TEST_F(StartFromAnotherRun, IsResumedBeforeTheFirstCheckpoint) {
  save(12);  // the other run may have continued
  for (const std::string& resume :
       {std::string("auto"), std::string("auto-or-restart"), step_folder(3).string(), run_.string(),
        checkpoints_of(run_).string(), (checkpoints_of(run_) / "latest").string()}) {
    const Start found = start(resume, second_);
    EXPECT_TRUE(found.in_place) << resume;
    ASSERT_TRUE(found.resume) << resume;
    EXPECT_EQ(found.resume->from, step_folder(3)) << resume;
  }
  EXPECT_THAT(message_of<UsageError>([&] { start(step_folder(12), second_); }), HasSubstr("holds a run: resume it"));
}

TEST_F(StartFromAnotherRun, IsNotResumedAfterTheFirstCheckpoint) {
  save_in_second(5);
  EXPECT_EQ(start("auto", second_).resume->checkpoint.step, 5);
  EXPECT_THROW(start(step_folder(3), second_), UsageError) << "the user may expect to start again at step 3";
  const Start restarted = restart(step_folder(3));
  EXPECT_TRUE(restarted.in_place);
  EXPECT_EQ(restarted.resume->checkpoint.step, 5) << "a launcher repeats the command";
  save(12);
  EXPECT_THROW(restart(step_folder(12)), UsageError) << "another source";
}

TEST_F(StartFromAnotherRun, IsRejectedIfTheSourceIsMissing) {
  fs::remove_all(step_folder(3));
  for (const char* resume : {"auto", "auto-or-restart"})
    EXPECT_THAT(message_of<CheckpointError>([&] { start(resume, second_); }),
                AllOf(HasSubstr("has no valid checkpoint, and the run started from " + step_folder(3).string()),
                      HasSubstr("restore that checkpoint, or start a new run in another --run-dir")));
}

TEST_F(StartFromAnotherRun, IsResumedAfterGivingUpDamagedCheckpoints) {
  save_in_second(5);
  fs::resize_file(checkpoints_of(second_) / "step-5" / kMetaFile, 20);
  EXPECT_THROW(start("auto", second_), CheckpointError);
  EXPECT_EQ(start("auto-or-restart", second_).resume->from, step_folder(3));
}

TEST_F(StartTest, AutoRejectsANewerFormat) {
  make_run();
  save(3);
  save(12);
  const fs::path meta = step_folder(12) / kMetaFile;
  const std::string text = tests::forged(tests::text_of(meta), [](auto& json) { json["format"] = 2; });
  std::ofstream(meta) << text;
  for (const char* resume : {"auto", "auto-or-restart"})
    EXPECT_THAT(message_of<CheckpointError>([&] { start(resume, run_); }), HasSubstr("step-12/meta.json has format 2"));
}

TEST_F(StartTest, WhatWasNamedMustBeThereAndSound) {
  EXPECT_THAT(message_of<CheckpointError>([&] { start(run_ / "none", run_); }),
              AllOf(HasSubstr("run/none does not exist"), HasSubstr("--resume")));
  make_run();
  EXPECT_THAT(message_of<CheckpointError>([&] { start(run_, run_); }), HasSubstr("holds no valid checkpoint"));
  save(3);
  fs::resize_file(step_folder(3) / kMetaFile, 20);
  EXPECT_THAT(message_of<CheckpointError>([&] { start(run_, run_); }),
              AllOf(HasSubstr("holds no valid checkpoint (passed over"), HasSubstr("step-3")));
  EXPECT_THROW(start(step_folder(3), run_), CheckpointError);
}

TEST_F(StartTest, WeightsAreReadFromFilesAndCheckpoints) {
  make_run();
  save(3);
  const fs::path file = folder_.path() / "weights.pt";
  write_pt(files_, file, std::vector{tensor()});
  for (const fs::path& path : {file, step_folder(3), step_folder(3) / kModelFile}) {
    const Start found = start("none", folder_.path() / "new", path);
    ASSERT_TRUE(found.weights) << path;
    EXPECT_EQ(found.weights->tensors, std::vector{tensor()}) << path;
    EXPECT_EQ(found.weights->from, path);
  }
  EXPECT_FALSE(start("auto", run_, file).weights) << "the run has its own by now";
  EXPECT_THROW(start("none", folder_.path() / "new", folder_.path() / "none.pt"), CheckpointError);
}

}  // namespace
}  // namespace gradring::train
