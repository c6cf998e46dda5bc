// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/line_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "kernels/base/file.h"
#include "tests/data/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/support/file_size_limit.h"
#include "tests/train/support/text_of.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/named_file.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::FileSizeLimit;
using tests::message_of;
using tests::text_of;

class LineFileTest : public ::testing::Test {
 protected:
  tests::TempFolder folder_;
  fs::path path_ = folder_.path() / "lines";
};

TEST_F(LineFileTest, WritesEachLineImmediately) {
  LineFile file(path_);
  EXPECT_EQ(text_of(path_), "");
  file.append("one");
  EXPECT_EQ(text_of(path_), "one\n");
  file.append("");
  file.append("three");
  EXPECT_EQ(text_of(path_), "one\n\nthree\n");
}

TEST_F(LineFileTest, AppendsToExistingFile) {
  std::ofstream(path_) << "older\n";
  LineFile file(path_);
  file.append("later");
  EXPECT_EQ(text_of(path_), "older\nlater\n");
  const FileSizeLimit disk(14);
  EXPECT_THROW(file.append("no more"), EnvironmentError);
  EXPECT_EQ(text_of(path_), "older\nlater\n");
}

TEST_F(LineFileTest, ReportsWhyItCannotBeCreated) {
  EXPECT_THAT(message_of<EnvironmentError>([&] { LineFile file(folder_.path() / "none" / "lines"); }),
              AllOf(HasSubstr("none/lines: No such file or directory"), HasSubstr("choose another --run-dir")));
}

TEST_F(LineFileTest, DoesNotWaitForTheReaderOfAPipe) {
  const auto pipe = folder_.path() / "log";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(message_of<EnvironmentError>([&] { LineFile{pipe}; }), HasSubstr("log: it is not a regular file"));
}

TEST_F(LineFileTest, FollowsLinkNamedByUser) {
  const fs::path link = folder_.path() / "link";
  std::ofstream(path_) << "older";
  fs::create_symlink("lines", link);
  write_named_file(link, "new\n");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(text_of(path_), "new\n");
}

TEST_F(LineFileTest, WritesToPipeNamedByUser) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  write_named_file(path_, "new\n");
  char text[8];
  EXPECT_EQ(::read(reader.get(), text, sizeof text), 4);
  EXPECT_TRUE(fs::is_fifo(path_));
}

TEST_F(LineFileTest, KeepsFileWithNameOfTemporary) {
  std::ofstream(temporary_of(path_)) << "the user's";
  write_named_file(path_, "new\n");
  EXPECT_EQ(text_of(path_), "new\n");
  EXPECT_EQ(text_of(temporary_of(path_)), "the user's");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 2) << "no temporary file remains";
}

TEST_F(LineFileTest, UnfinishedNamedFileChangesNothing) {
  std::ofstream(path_) << "older";
  {
    NamedFile file(path_);
    file.write("new");
  }
  EXPECT_EQ(text_of(path_), "older");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "no temporary file remains";
}

/// Another process may make the same file, with the same temporary one, where the folder was.
TEST_F(LineFileTest, NamedFileStaysInItsFolder) {
  const fs::path out = folder_.path() / "out", moved = folder_.path() / "moved";
  fs::create_directory(out);
  NamedFile file(out / "a");
  file.write("ours");
  fs::rename(out, moved);
  fs::create_directory(out);
  std::ofstream(out / "a") << "theirs";
  std::ofstream(temporary_of(out / "a")) << "half of";
  file.finish();
  EXPECT_EQ(text_of(moved / "a"), "ours");
  EXPECT_EQ(text_of(out / "a"), "theirs");
  EXPECT_EQ(text_of(temporary_of(out / "a")), "half of");
}

/// As --output /dev/stdout of `runs export`, whose names of columns come from a file.
TEST_F(LineFileTest, NamedFileSendsATerminalNothingThatItObeys) {
  const UniqueFd screen(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(screen && ::grantpt(screen.get()) == 0 && ::unlockpt(screen.get()) == 0);
  const UniqueFd line(::open(::ptsname(screen.get()), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  NamedFile file(fs::path(::ptsname(screen.get())));
  file.write("loss,\x1b[2J\xc2\x9b\n");
  file.finish();
  char shown[64];
  const ssize_t size = ::read(screen.get(), shown, sizeof shown);
  ASSERT_GT(size, 0);
  EXPECT_EQ(std::string(shown, static_cast<std::size_t>(size)), "loss,\\x1b[2J\\u009b\r\n") << "the terminal adds \\r";
}

TEST_F(LineFileTest, FailsOnFullDevice) {
  fs::create_symlink("/dev/full", path_);  // not the device itself: a defect would replace it
  EXPECT_THROW(write_named_file(path_, "new\n"), EnvironmentError);
  EXPECT_TRUE(fs::is_symlink(path_));
}

TEST_F(LineFileTest, DoesNotFollowTemporaryLink) {
  const fs::path precious = folder_.path() / "precious";
  std::ofstream(precious) << "older";
  fs::create_symlink(precious, temporary_of(path_));
  write_file_whole(path_, "new\n");
  EXPECT_EQ(text_of(precious), "older");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path_)));
}

TEST_F(LineFileTest, RemovesIncompleteLine) {
  LineFile file(path_);
  file.append("0123456");
  {
    const FileSizeLimit disk(12);
    EXPECT_THAT(message_of<EnvironmentError>([&] { file.append("89abcdef"); }),
                HasSubstr("lines: File too large; raise ulimit -f, or choose another --run-dir"));
    EXPECT_EQ(text_of(path_), "0123456\n") << "no incomplete line";
  }
  file.append("later");
  EXPECT_EQ(text_of(path_), "0123456\nlater\n");
}

TEST_F(LineFileTest, WriteFileWholeReplacesFile) {
  write_file_whole(path_, "first");
  write_file_whole(path_, "second");
  EXPECT_EQ(text_of(path_), "second");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "no temporary file remains";
}

TEST_F(LineFileTest, WriteFileWholeKeepsOldFileOnFullDisk) {
  write_file_whole(path_, "before");
  const FileSizeLimit disk(3);
  EXPECT_THROW(write_file_whole(path_, "longer than that"), EnvironmentError);
  EXPECT_THROW(write_file_whole(folder_.path() / "new", "longer than that"), EnvironmentError);
  EXPECT_EQ(text_of(path_), "before");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "no temporary file remains";
}

TEST_F(LineFileTest, WriteFileWholeCannotReplaceFolder) {
  fs::create_directory(path_);
  EXPECT_THROW(write_file_whole(path_, "text"), EnvironmentError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

}  // namespace
}  // namespace gradring::train
