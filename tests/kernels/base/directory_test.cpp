// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class DirectoryTest : public ::testing::Test {
 protected:
  DirectoryTest() { fs::create_directory(path_); }

  tests::TempFolder folder_;
  fs::path path_ = folder_.path() / "run";
  fs::path elsewhere_ = folder_.path() / "elsewhere";
};

TEST_F(DirectoryTest, FindsItsFilesWhereverItIsMoved) {
  const Directory directory(path_);
  const FileAt file = directory.at(path_ / "sub" / "a");
  EXPECT_EQ(file.path(), path_ / "sub" / "a");
  ASSERT_EQ(make_folder(directory.at(path_ / "sub")), 0);
  fs::rename(path_, elsewhere_);
  fs::create_directories(path_ / "sub");
  ASSERT_TRUE(open_file(file, O_WRONLY | O_CREAT));
  ASSERT_TRUE(open_file(directory.at(path_) / "b", O_WRONLY | O_CREAT));
  EXPECT_TRUE(fs::exists(elsewhere_ / "sub" / "a"));
  EXPECT_TRUE(fs::exists(elsewhere_ / "b"));
  EXPECT_TRUE(fs::is_empty(path_ / "sub"));
  int error = 0;
  EXPECT_THAT(names_in(directory.at(path_), error), UnorderedElementsAre("sub", "b"));
  EXPECT_EQ(error, 0);
}

TEST_F(DirectoryTest, LeavesOtherPathsAlone) {
  const Directory directory(path_);
  for (const fs::path& other : {elsewhere_, folder_.path(), fs::path(path_.string() + "-2"), fs::path("a")}) {
    EXPECT_EQ(directory.at(other).directory(), AT_FDCWD) << other;
    EXPECT_EQ(directory.at(other).name(), other) << other;
  }
  EXPECT_EQ(Directory().at("a").directory(), AT_FDCWD);
}

TEST_F(DirectoryTest, KnowsWhereItIs) {
  const Directory directory(path_ / "");
  EXPECT_EQ(directory.path(), path_);
  EXPECT_EQ(directory.current_path(), path_);
  fs::rename(path_, elsewhere_);
  EXPECT_EQ(directory.current_path(), fs::canonical(elsewhere_));
  fs::create_directory(path_);
  EXPECT_EQ(directory.current_path(), fs::canonical(elsewhere_));
  EXPECT_FALSE(directory.is_removed());
  fs::remove(elsewhere_);
  EXPECT_TRUE(directory.is_removed());
  EXPECT_EQ(directory.current_path(), "");
  EXPECT_FALSE(open_file(directory.at(path_ / "a"), O_WRONLY | O_CREAT));
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(DirectoryTest, MayBeReachedByALink) {
  fs::create_directory_symlink(path_, elsewhere_);
  const Directory directory(elsewhere_);
  EXPECT_EQ(directory.current_path(), elsewhere_);
}

TEST_F(DirectoryTest, IsNoneIfItCannotBeOpened) {
  EXPECT_FALSE(Directory(elsewhere_));
  EXPECT_EQ(errno, ENOENT);
  std::ofstream{elsewhere_};
  EXPECT_FALSE(Directory(elsewhere_));
  EXPECT_EQ(errno, ENOTDIR);
  int error = 0;
  EXPECT_THAT(names_in(elsewhere_, error), IsEmpty());
  EXPECT_EQ(error, ENOTDIR);
}

TEST_F(DirectoryTest, SeesThatAFileWasReplaced) {
  const Directory directory(path_);
  const FileAt file = directory.at(path_ / "a");
  const UniqueFd opened = open_file(file, O_WRONLY | O_CREAT);
  EXPECT_TRUE(is_at(file, opened));
  fs::remove(path_ / "a");
  EXPECT_FALSE(is_at(file, opened));
  std::ofstream{path_ / "a"};
  EXPECT_FALSE(is_at(file, opened));
}

/// In a process of its own: the umask belongs to the process.
TEST_F(DirectoryTest, LeavesModesToTheUmask) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::umask(002);
    const bool created = make_folder(path_ / "folder") == 0 && open_file(path_ / "file", O_WRONLY | O_CREAT);
    ::_exit(created ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(fs::status(path_ / "folder").permissions(), fs::perms(0775));
  EXPECT_EQ(fs::status(path_ / "file").permissions(), fs::perms(0664));
}

}  // namespace
}  // namespace gradring
