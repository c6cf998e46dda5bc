// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>
#include <cstdlib>
#include <fstream>
#include <future>
#include <memory>
#include <optional>

#include "kernels/base/error.h"
#include "tests/support/no_more_files.h"
#include "tests/support/temp_folder.h"
#include "tests/train/launch/running_launcher.h"
#include "train/launch/workers/run_folder.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

TEST(RunFolder, IsPrivateAndRemovedByItsOwner) {
  TestFolder parent;
  fs::path path;
  {
    const RunFolder run(parent.path());
    path = run.path();
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    EXPECT_EQ(fs::status(run.store()).permissions(), fs::perms::owner_all);
    EXPECT_EQ(run.error_file(3).parent_path(), path);
    std::ofstream(run.store() / "socket") << "x";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(RunFolder, RemovesStaleRunFoldersOnly) {
  TestFolder parent;
  const RunFolder alive(parent.path());
  const fs::path stale = parent.path() / "gradring-run-stale0";
  const fs::path others = parent.path() / "another-folder";
  fs::copy(alive.path(), stale, fs::copy_options::recursive);  // as a killed run leaves it
  fs::create_directories(others);
  fs::create_directory_symlink(others, parent.path() / "gradring-run-linked");
  for (const char* name : {"gradring-run-abcdef", "gradring-run-my", "gradring-run-mnist-7"})
    fs::create_directories(parent.path() / name / "checkpoints");  // of the user
  fs::copy(alive.path(), parent.path() / "gradring-run-a copy", fs::copy_options::recursive);

  const RunFolder next(parent.path());
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(alive.store()));
  EXPECT_TRUE(fs::exists(others));
  for (const char* name : {"gradring-run-abcdef", "gradring-run-my", "gradring-run-mnist-7"})
    EXPECT_TRUE(fs::exists(parent.path() / name / "checkpoints")) << name;
  EXPECT_TRUE(fs::exists(parent.path() / "gradring-run-a copy"));
  EXPECT_NE(next.path(), alive.path());
}

TEST(RunFolder, RemovalFollowsNoLink) {
  TestFolder parent;
  const fs::path archive = parent.path() / "archive", link = parent.path() / "gradring-run-linked";
  fs::create_directories(archive / "weights");
  fs::create_directory_symlink(archive, link);
  EXPECT_TRUE(remove_run_folder(link));
  EXPECT_TRUE(fs::exists(archive / "weights"));
  EXPECT_FALSE(remove_run_folder(parent.path() / "gradring-run-absent"));
}

TEST(RunFolder, IsHeldWhileItsOwnerLives) {
  TestFolder parent;
  fs::path path;
  {
    const RunFolder run(parent.path());
    path = run.path();
    EXPECT_TRUE(RunFolder::is_held(path));
    fs::create_directory_symlink(path, parent.path() / "link");
    EXPECT_FALSE(RunFolder::is_held(parent.path() / "link"));
  }
  EXPECT_FALSE(RunFolder::is_held(path));
  fs::create_directory(path);  // as left by a run whose processes were all killed
  EXPECT_FALSE(RunFolder::is_held(path));
}

TEST(RunFolder, ErrorNamesTheParentFolder) {
  try {
    const RunFolder run("/no/such/folder");
    FAIL() << "made a folder in no folder";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("in /no/such/folder: No such file or directory"));
  }
}

TEST(RunFolder, LeavesNothingIfItCannotBeLocked) {
  TestFolder parent;
  std::string message;
  try {
    const tests::NoMoreFiles limit;
    const RunFolder run(parent.path());
  } catch (const DeviceError& error) {
    message = error.what();
  }
  EXPECT_THAT(message, testing::MatchesRegex("cannot use the run folder .*: Too many open files"));
  EXPECT_TRUE(fs::is_empty(parent.path()));
}

TEST(TemporaryFolder, LeavesRoomForASocketPath) {
  const char* before = std::getenv("TMPDIR");
  const std::optional<std::string> kept = before == nullptr ? std::nullopt : std::optional<std::string>(before);
  ::setenv("TMPDIR", ("/tmp/" + std::string(60, 'x')).c_str(), 1);
  EXPECT_EQ(temporary_folder(), "/tmp");
  ::setenv("TMPDIR", "/var/tmp", 1);
  EXPECT_EQ(temporary_folder(), "/var/tmp");
  kept ? ::setenv("TMPDIR", kept->c_str(), 1) : ::unsetenv("TMPDIR");
}

constexpr RunName kName{.kind = "meet"};

/// Counts how often processes open or close a folder.
class FolderWatch {
 public:
  /// Creating a link opens the folder twice: to lock it, and to read its entries.
  static constexpr int kMoreThanOneAttempt = 10;

  explicit FolderWatch(const fs::path& folder) : watch_(::inotify_init1(IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(watch_.get(), folder.c_str(), IN_OPEN | IN_CLOSE), 0);
  }
  /// Waits for `count` events; consecutive equal ones may count once.
  bool await(int count) const {
    alignas(inotify_event) char buffer[sizeof(inotify_event)];  // of the folder itself: without a name
    pollfd ready = {watch_.get(), POLLIN, 0};
    for (; count > 0 && ::poll(&ready, 1, 10'000) == 1; --count) {
      if (::read(watch_.get(), buffer, sizeof buffer) < 0) return false;
    }
    return count == 0;
  }

 private:
  UniqueFd watch_;
};

class RunLinkTest : public ::testing::Test {
 protected:
  static std::optional<fs::path> follow(const PrivateFolder& place, const std::string& run_id) {
    return RunLink::follow(place, {.kind = "meet", .run_id = run_id, .port = 1});
  }

  tests::TempFolder temporary_, runs_;
  PrivateFolder place_{"", temporary_.path()};
  RunFolder folder_{runs_.path()};
};

TEST_F(RunLinkTest, LeadsToTheFolderUntilDestroyed) {
  EXPECT_FALSE(follow(place_, "a"));
  {
    const RunLink link(place_, {.kind = "meet", .run_id = "a", .port = 1}, folder_);
    EXPECT_EQ(follow(place_, "a"), folder_.path());
    EXPECT_FALSE(follow(place_, "b"));
    EXPECT_FALSE(RunLink::follow(place_, {.kind = "token", .run_id = "a", .port = 1}));
    EXPECT_FALSE(RunLink::follow(place_, {.kind = "meet", .run_id = "a", .port = 2}));
    EXPECT_FALSE(RunLink::follow(place_, {.kind = "meet", .run_id = "a", .port = 1, .attempt = 1}));
  }
  EXPECT_TRUE(fs::is_empty(temporary_.path()));
}

TEST_F(RunLinkTest, OfALiveRunIsNotReplaced) {
  const RunFolder other(runs_.path());
  const RunLink link(place_, {.kind = "meet", .run_id = "a", .port = 1}, folder_);
  EXPECT_THROW(RunLink(place_, {.kind = "meet", .run_id = "a", .port = 1}, other), DeviceError);
  EXPECT_EQ(follow(place_, "a"), folder_.path());
}

TEST_F(RunLinkTest, WaitsForAnEndingRun) {
  auto ending = std::make_unique<RunFolder>(runs_.path());
  auto left = std::make_unique<RunLink>(place_, RunName{.kind = "meet", .run_id = "a", .port = 1}, *ending);
  FolderWatch watch(place_.path());
  auto next = std::async(std::launch::async, [&] {
    return std::make_unique<RunLink>(place_, RunName{.kind = "meet", .run_id = "a", .port = 1}, folder_);
  });
  ASSERT_TRUE(watch.await(FolderWatch::kMoreThanOneAttempt));
  left.reset();
  ending.reset();
  const auto link = next.get();
  EXPECT_EQ(follow(place_, "a"), folder_.path());
}

TEST_F(RunLinkTest, OfAKilledRunIsIgnoredAndRemovedByTheNext) {
  const fs::path stale = runs_.path() / "gradring-run-killed";
  fs::path left;
  {
    const RunLink link(place_, {.kind = "meet", .run_id = "a", .port = 1}, folder_);
    left = fs::directory_iterator(place_.path())->path();
    fs::remove(left);
    fs::create_symlink(stale, left);
    EXPECT_FALSE(follow(place_, "a"));
  }
  EXPECT_TRUE(fs::is_symlink(left)) << "it is not that run's own";
  { const RunLink next(place_, {.kind = "meet", .run_id = "b", .port = 1}, folder_); }
  EXPECT_TRUE(fs::is_empty(temporary_.path()));
}

TEST_F(RunLinkTest, LeavesOtherFilesAlone) {
  const tests::TempFolder runtime;
  fs::create_directory(runtime.path() / "gradring-mine");
  fs::create_symlink("gradring-run-mine", runtime.path() / "gradring-run");
  { const RunLink link(PrivateFolder(runtime.path(), temporary_.path()), kName, folder_); }
  EXPECT_TRUE(fs::is_directory(runtime.path() / "gradring-mine"));
  EXPECT_TRUE(fs::is_symlink(runtime.path() / "gradring-run"));
}

}  // namespace
}  // namespace gradring::train
