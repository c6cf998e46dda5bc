// SPDX-License-Identifier: Apache-2.0
#include "train/report/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/data/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/support/file_size_limit.h"
#include "tests/train/support/text_of.h"
#include "train/config/resolve.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using tests::message_of;

class RunDirectory : public ::testing::Test {
 protected:
  tests::TempFolder folder_;
  fs::path path_ = folder_.path() / "run";
  TrainConfig config_{.batch_size = 17};
};

TEST_F(RunDirectory, HoldsTheConfigAndAFolderForLogs) {
  make_run_dir(path_, config_);
  EXPECT_EQ(tests::text_of(path_ / "config.resolved.toml"), to_toml(config_));
  EXPECT_TRUE(fs::is_empty(path_ / "logs"));
  EXPECT_EQ(log_file(path_, 3), path_ / "logs" / "rank_3.log");
}

TEST_F(RunDirectory, IsMadeWithItsParents) {
  make_run_dir(folder_.path() / "a" / "b" / "run", config_);
  EXPECT_TRUE(fs::exists(folder_.path() / "a" / "b" / "run" / "config.resolved.toml"));
}

TEST_F(RunDirectory, IsNeverOneThatIsThere) {
  fs::create_directory(path_);
  EXPECT_THAT(message_of<UsageError>([&] { make_run_dir(path_, config_); }), HasSubstr("is there already"));
  EXPECT_THROW(check_new_run_dir(path_), UsageError);
  EXPECT_TRUE(fs::is_empty(path_));

  std::ofstream(folder_.path() / "file") << "precious";
  EXPECT_THROW(make_run_dir(folder_.path() / "file", config_), UsageError);
  fs::create_symlink("nowhere", folder_.path() / "link");
  EXPECT_THROW(make_run_dir(folder_.path() / "link", config_), UsageError);
  EXPECT_NO_THROW(check_new_run_dir(folder_.path() / "new"));
}

TEST_F(RunDirectory, MayBeAVacantFolderWhereARunGoesOnByItself) {
  fs::create_directory(path_);
  config_.resume = "auto";
  make_run_dir(path_, config_);
  EXPECT_TRUE(fs::is_empty(path_ / "logs"));
  EXPECT_THROW(make_run_dir(path_, config_), UsageError) << "it is a run by now";
}

TEST_F(RunDirectory, SaysWhyItCannotBeMade) {
  std::ofstream(folder_.path() / "file") << "precious";
  EXPECT_THAT(message_of<EnvironmentError>([&] { make_run_dir(folder_.path() / "file" / "run", config_); }),
              HasSubstr("Not a directory; choose another --run-dir"));
  EXPECT_THAT(message_of<EnvironmentError>([&] { make_run_dir("/proc/none/run", config_); }),
              HasSubstr("cannot make the run directory /proc/none/run: "));
}

TEST_F(RunDirectory, LeavesNothingBehindWhenTheDiskIsFull) {
  const tests::FileSizeLimit disk(3);
  EXPECT_THROW(make_run_dir(path_, config_), EnvironmentError);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(RunDirectory, IsNamedByTheUserOrByTheRun) {
  config_.run_dir = "some/where/";
  EXPECT_EQ(run_dir_for(config_), "some/where") << "a slash behind it says nothing";
  config_.run_dir = "";
  EXPECT_THAT(run_dir_for(config_).string(), MatchesRegex("runs/digits-convnet-[0-9]{8}-[0-9]{6}"));
}

}  // namespace
}  // namespace gradring::train
