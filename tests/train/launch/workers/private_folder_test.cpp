// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "kernels/base/error.h"
#include "tests/support/temp_folder.h"
#include "train/launch/workers/private_folder.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PrivateFolderTest : public ::testing::Test {
 protected:
  /// Both open() and lock() must fail.
  void expect_refused(const std::string& reason) const {
    for (const bool locks : {false, true}) try {
        locks ? folder_.lock() : folder_.open();
        ADD_FAILURE() << "it was used";
      } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(),
                    AllOf(HasSubstr(folder_.path()), HasSubstr(reason), HasSubstr("set XDG_RUNTIME_DIR")));
      }
  }
  static mode_t mode_of(const fs::path& path) {
    struct stat facts {};
    return ::lstat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777 : 0;
  }

  tests::TempFolder temporary_;
  PrivateFolder folder_{"", temporary_.path()};
};

TEST_F(PrivateFolderTest, IsCreatedPrivateAndRemovedWhenEmpty) {
  EXPECT_EQ(folder_.path().parent_path(), temporary_.path());
  EXPECT_FALSE(folder_.open());
  {
    const UniqueFd locked = folder_.lock();
    EXPECT_EQ(mode_of(folder_.path()), mode_t(0700));
    EXPECT_TRUE(folder_.open());
    std::ofstream(folder_.path() / "used").flush();
    folder_.remove_if_empty();
    EXPECT_TRUE(fs::exists(folder_.path() / "used"));
    fs::remove(folder_.path() / "used");
    folder_.remove_if_empty();
  }
  EXPECT_TRUE(fs::is_empty(temporary_.path()));
}

TEST_F(PrivateFolderTest, RejectsAFolderOpenToOthers) {
  ASSERT_EQ(::mkdir(folder_.path().c_str(), 0700), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0711), 0);
  expect_refused("its mode is 0711, expected 0700");
}

TEST_F(PrivateFolderTest, RejectsALink) {
  const tests::TempFolder elsewhere;
  fs::create_directory_symlink(elsewhere.path(), folder_.path());
  expect_refused("it is a symbolic link");
  EXPECT_TRUE(fs::is_empty(elsewhere.path()));
}

TEST_F(PrivateFolderTest, RejectsAFile) {
  std::ofstream(folder_.path()).flush();
  expect_refused("it is not a folder");
}

TEST_F(PrivateFolderTest, RejectsAFolderOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a folder to another user";
  ASSERT_EQ(::mkdir(folder_.path().c_str(), 0700), 0);
  ASSERT_EQ(::chown(folder_.path().c_str(), 1, 1), 0);
  expect_refused("it belongs to user 1, expected 0");
}

TEST_F(PrivateFolderTest, PrefersAPrivateRuntimeFolder) {
  const tests::TempFolder runtime;
  const PrivateFolder folder(runtime.path(), temporary_.path());
  EXPECT_EQ(folder.path(), runtime.path());
  { const UniqueFd locked = folder.lock(); }
  folder.remove_if_empty();
  EXPECT_TRUE(fs::exists(runtime.path()));

  ASSERT_EQ(::chmod(runtime.path().c_str(), 0755), 0);
  EXPECT_EQ(PrivateFolder(runtime.path(), temporary_.path()).path(), folder_.path());
  EXPECT_EQ(PrivateFolder(runtime.path() / "missing", temporary_.path()).path(), folder_.path());
}

TEST_F(PrivateFolderTest, SurvivesConcurrentCreationAndRemoval) {
  constexpr int kThreads = 4, kRounds = 200;
  std::atomic<int> inside = 0, failures = 0;
  const auto use = [&] {
    for (int round = 0; round < kRounds; ++round) {
      const UniqueFd locked = folder_.lock();
      failures += ++inside != 1 || !fs::is_directory(folder_.path());
      --inside;  // before the folder is removed, which ends the lock
      folder_.remove_if_empty();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(use);
  }
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(fs::is_empty(temporary_.path()));
}

class PrivateFileTest : public ::testing::Test {
 protected:
  std::string fault() const try {
    read_private_file(path_);
    return "";
  } catch (const InvalidArgument& error) {
    return error.what();
  } catch (const DeviceError& error) {
    return std::string("device: ") + error.what();
  }

  tests::TempFolder folder_;
  std::filesystem::path path_ = folder_.path() / "secret";
};

TEST_F(PrivateFileTest, IsReadWithoutItsLineEnd) {
  write_private_file(path_, "some words\n");
  struct stat facts {};
  ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, mode_t(0600));
  EXPECT_EQ(read_private_file(path_), "some words");
  EXPECT_THAT([&] { write_private_file(path_, "another"); },
              ::testing::ThrowsMessage<DeviceError>("cannot write " + path_.string() + ": File exists"));
}

TEST_F(PrivateFileTest, IsRejectedIfOthersCanOpenIt) {
  write_private_file(path_, "secret");
  for (const mode_t mode : {0640, 0604, 0622}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_THAT(fault(), HasSubstr("secret has mode 06"));
  }
  if (::geteuid() != 0) GTEST_SKIP() << "the rest needs root, to give a file to another user";
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  ASSERT_EQ(::chown(path_.c_str(), 1, 1), 0);
  EXPECT_THAT(fault(), HasSubstr("secret belongs to user 1"));
}

TEST_F(PrivateFileTest, ErrorNamesTheDefect) {
  EXPECT_THAT(fault(), HasSubstr("secret does not exist"));
  write_private_file(path_, "\n");
  EXPECT_THAT(fault(), HasSubstr("secret is empty"));
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  EXPECT_THAT(fault(), AllOf(StartsWith("device: "), HasSubstr("secret cannot be read (Is a directory)")));
  std::filesystem::remove(path_);
  write_private_file(path_, std::string(5000, 'x'));
  EXPECT_THAT(fault(), HasSubstr("secret is larger than 4096 bytes"));
}

}  // namespace
}  // namespace gradring::train
