// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

#include "tests/data/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/support/file_size_limit.h"
#include "tests/train/support/text_of.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/metrics.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using tests::message_of;

class RunDirectory : public ::testing::Test {
 protected:
  LockedRunDir make(const fs::path& path) const { return make_run_dir({.path = path, .config = kConfig}); }

  static constexpr const char* kConfig = "batch-size = 17\n";
  tests::TempFolder folder_;
  fs::path path_ = folder_.path() / "run";
};

TEST_F(RunDirectory, HoldsConfigAndLogsAndIsLocked) {
  {
    const LockedRunDir run = make(path_);
    EXPECT_EQ(run.path, path_);
    EXPECT_TRUE(run.lock);
    EXPECT_THROW(RunLock(path_, {}), UsageError);
  }
  EXPECT_EQ(tests::text_of(path_ / "config.resolved.toml"), kConfig);
  EXPECT_TRUE(fs::is_empty(path_ / "logs"));
  EXPECT_EQ(log_file(path_, 3), path_ / "logs" / "rank_3.log");
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), {}), 2) << "the lock removes its file";
}

TEST_F(RunDirectory, CreatesParents) {
  make(folder_.path() / "a" / "b" / "run");
  EXPECT_TRUE(fs::exists(folder_.path() / "a" / "b" / "run" / "config.resolved.toml"));
}

TEST_F(RunDirectory, AcceptsEmptyDirectory) {
  fs::create_directory(path_);
  EXPECT_EQ(state_of(path_), RunDirState::vacant);
  EXPECT_NO_THROW(check_new_run_dir(path_));
  make(path_);
  EXPECT_EQ(state_of(path_), RunDirState::run);
}

TEST_F(RunDirectory, AcceptsLeftoversOfKilledProcess) {
  fs::create_directories(path_ / "logs");
  std::ofstream(path_ / ".lock") << R"({"pid": 4194305, "host": "here"})";
  std::ofstream(path_ / "config.resolved.toml.tmp") << "half a li";
  EXPECT_EQ(state_of(path_), RunDirState::vacant);
  make(path_);
  EXPECT_EQ(tests::text_of(path_ / "config.resolved.toml"), kConfig);
  EXPECT_FALSE(fs::exists(path_ / "config.resolved.toml.tmp"));
}

TEST_F(RunDirectory, RejectsOtherContent) {
  fs::create_directory(path_);
  std::ofstream(path_ / "thesis.tex") << "precious";
  EXPECT_THAT(message_of<UsageError>([&] { make(path_); }), HasSubstr("holds thesis.tex, expected an empty directory"));
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), {}), 1);

  std::ofstream(folder_.path() / "file") << "precious";
  EXPECT_THROW(make(folder_.path() / "file"), UsageError);
  fs::create_symlink("nowhere", folder_.path() / "link");
  EXPECT_THROW(make(folder_.path() / "link"), UsageError);
  EXPECT_NO_THROW(check_new_run_dir(folder_.path() / "new"));

  make(folder_.path() / "new");
  EXPECT_THAT(message_of<UsageError>([&] { make(folder_.path() / "new"); }), HasSubstr("holds a run"));
}

TEST_F(RunDirectory, AcceptsLinkToEmptyDirectory) {
  fs::create_directory(folder_.path() / "disk");
  fs::create_directory_symlink("disk", path_);
  make(path_);
  EXPECT_EQ(tests::text_of(folder_.path() / "disk" / "config.resolved.toml"), kConfig);
}

TEST_F(RunDirectory, ReportsTooLongName) {
  const auto name_it = [&] { make(folder_.path() / std::string(300, 'n')); };
  EXPECT_THAT(message_of<EnvironmentError>(name_it), HasSubstr("File name too long"));
}

TEST_F(RunDirectory, RejectsDirectoryLockedByAnotherRun) {
  fs::create_directory(path_);
  const RunLock other(path_, {});  // which writes its config next
  EXPECT_THAT(message_of<UsageError>([&] { make(path_); }), HasSubstr("in use by another run"));
  EXPECT_TRUE(fs::exists(path_ / ".lock"));
}

TEST_F(RunDirectory, NumbersGeneratedNamesInUse) {
  const auto generate = [&] { return make_run_dir({.path = path_, .generated = true, .config = kConfig}); };
  const LockedRunDir first = generate(), second = generate();
  EXPECT_EQ(first.path, path_);
  EXPECT_EQ(second.path, folder_.path() / "run-2");
  std::ofstream(folder_.path() / "run-3") << "precious";
  EXPECT_EQ(generate().path, folder_.path() / "run-4");
}

TEST_F(RunDirectory, ConcurrentRunsGetTheirOwnGeneratedName) {
  constexpr int kRuns = 16;
  std::vector<fs::path> paths(kRuns);
  {
    std::vector<std::jthread> runs;
    for (fs::path& path : paths)
      runs.emplace_back([&] { path = make_run_dir({.path = path_, .generated = true, .config = kConfig}).path; });
  }
  EXPECT_EQ(std::set(paths.begin(), paths.end()).size(), paths.size());
  for (const fs::path& path : paths) EXPECT_EQ(state_of(path), RunDirState::run) << path;
}

TEST_F(RunDirectory, OnlyOneConcurrentRunGetsAName) {
  std::atomic<int> made = 0, refused = 0;
  {
    std::vector<std::jthread> runs;
    for (int i = 0; i < 8; ++i)
      runs.emplace_back([&] {
        try {
          const LockedRunDir run = make(path_);
          ++made;
          while (made + refused < 8) std::this_thread::yield();
        } catch (const UsageError&) {
          ++refused;
        }
      });
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(state_of(path_), RunDirState::run);
}

TEST_F(RunDirectory, ReportsWhyItCannotBeCreated) {
  std::ofstream(folder_.path() / "file") << "precious";
  EXPECT_THAT(message_of<EnvironmentError>([&] { make(folder_.path() / "file" / "run"); }),
              HasSubstr("Not a directory; choose another --run-dir"));
  EXPECT_THAT(message_of<EnvironmentError>([&] { make("/proc/none/run"); }),
              HasSubstr("cannot create the run directory /proc/none/run: "));
}

TEST_F(RunDirectory, LeavesNothingOnFullDisk) {
  const rlim_t none = 3, enough_for_the_lock = 300;
  for (const rlim_t bytes : {none, enough_for_the_lock}) {
    const tests::FileSizeLimit disk(bytes);
    const NewRunDir spec{.path = path_, .config = std::string(1000, '#')};
    EXPECT_THROW(make_run_dir(spec), EnvironmentError);
    EXPECT_TRUE(fs::is_empty(folder_.path()));
  }
  fs::create_directory(path_);
  const tests::FileSizeLimit disk(enough_for_the_lock);
  EXPECT_THROW(make_run_dir({.path = path_, .config = std::string(1000, '#')}), EnvironmentError);
  EXPECT_TRUE(fs::is_empty(path_)) << "an existing directory stays";
}

TEST_F(RunDirectory, KeepsSummaryAndConfigOnResume) {
  make(path_);
  std::ofstream(path_ / "summary.json") << "{}";
  truncate_metrics(metrics_of(path_), 3, 0);
  EXPECT_TRUE(fs::exists(path_ / "summary.json"));
  EXPECT_EQ(tests::text_of(path_ / "config.resolved.toml"), kConfig);
}

TEST_F(RunDirectory, HasGivenOrGeneratedName) {
  EXPECT_EQ(named_run_dir(""), std::nullopt);
  EXPECT_THAT(generated_run_dir("digits-convnet", 0).string(), MatchesRegex("runs/digits-convnet-[0-9]{8}-[0-9]{6}"));
  EXPECT_EQ(named_run_dir("some/where/"), "some/where") << "ignores a trailing slash";
}

TEST(RunConfigs, AreNumberedAndNeverOverwritten) {
  const tests::TempFolder folder;
  const auto& run = folder.path();
  std::ofstream(first_config(run)) << "a";
  EXPECT_EQ(newest_config(run), run / "config.resolved.toml");
  EXPECT_EQ(write_next_config(Directory(run), "b"), run / "config.resolved-2.toml");
  EXPECT_EQ(write_next_config(Directory(run), "c"), run / "config.resolved-3.toml");
  EXPECT_EQ(newest_config(run), run / "config.resolved-3.toml");
  EXPECT_EQ(tests::text_of(first_config(run)), "a");
  EXPECT_EQ(tests::text_of(run / "config.resolved-2.toml"), "b");
}

TEST(RunConfigs, RestoreRemovedFirst) {
  const tests::TempFolder folder;
  EXPECT_EQ(newest_config(folder.path()), first_config(folder.path()));
  EXPECT_EQ(write_next_config(Directory(folder.path()), "a"), first_config(folder.path()));
}

TEST(RunConfigs, AreOrderedByNumber) {
  const tests::TempFolder folder;
  const auto& run = folder.path();
  for (const char* name : {"config.resolved-9.toml", "config.resolved-10.toml", "config.resolved-x.toml",
                           "config.resolved-99.toml.tmp", "config.resolved-11a.toml"})
    std::ofstream(run / name) << name;
  EXPECT_EQ(newest_config(run), run / "config.resolved-10.toml");
  EXPECT_EQ(write_next_config(Directory(run), "d"), run / "config.resolved-11.toml");
}

}  // namespace
}  // namespace gradring::train
