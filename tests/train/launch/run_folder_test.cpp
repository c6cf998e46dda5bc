// SPDX-License-Identifier: Apache-2.0
#include "train/launch/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "kernels/runtime/error.h"
#include "tests/support/no_more_files.h"
#include "tests/train/launch/running_launcher.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

TEST(RunFolder, IsPrivateAndGoesWithItsOwner) {
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

TEST(RunFolder, SweepsStaleOnesAndNoOthers) {
  TestFolder parent;
  const RunFolder alive(parent.path());
  const fs::path stale = parent.path() / "gradring-run-stale0";
  const fs::path others = parent.path() / "another-folder";
  fs::copy(alive.path(), stale, fs::copy_options::recursive);  // as it lies there when its run was killed
  fs::create_directories(others);
  fs::create_directory_symlink(others, parent.path() / "gradring-run-linked");
  for (const char* name : {"gradring-run-abcdef", "gradring-run-my", "gradring-run-mnist-7"})
    fs::create_directories(parent.path() / name / "checkpoints");  // a user's
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

TEST(RunFolder, IsHeldAsLongAsItsOwnerLives) {
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
  fs::create_directory(path);  // as a run leaves it that was killed as a whole
  EXPECT_FALSE(RunFolder::is_held(path));
}

TEST(RunFolder, SaysWhereItCannotBe) {
  try {
    const RunFolder run("/no/such/folder");
    FAIL() << "made a folder in no folder";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("under /no/such/folder: No such file or directory"));
  }
}

TEST(RunFolder, SaysWhenItCannotBeLockedAndLeavesNothing) {
  TestFolder parent;
  std::string message;
  try {
    const tests::NoMoreFiles limit;
    const RunFolder run(parent.path());
  } catch (const DeviceError& error) {
    message = error.what();
  }
  EXPECT_THAT(message, testing::HasSubstr("the folder of this run: Too many open files"));
  EXPECT_TRUE(fs::is_empty(parent.path()));
}

TEST(RunFolder, LeavesRoomForTheNameOfASocket) {
  const char* before = std::getenv("TMPDIR");
  const std::optional<std::string> kept = before == nullptr ? std::nullopt : std::optional<std::string>(before);
  ::setenv("TMPDIR", ("/tmp/" + std::string(60, 'x')).c_str(), 1);
  EXPECT_EQ(RunFolder::default_parent(), "/tmp");
  ::setenv("TMPDIR", "/var/tmp", 1);
  EXPECT_EQ(RunFolder::default_parent(), "/var/tmp");
  kept ? ::setenv("TMPDIR", kept->c_str(), 1) : ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace gradring::train
