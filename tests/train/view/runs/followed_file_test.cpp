// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/followed_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/allocated_bytes.h"
#include "tests/support/temp_folder.h"
#include "train/records/metrics/metrics_lines.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FollowedFileTest : public ::testing::Test {
 protected:
  using Change = FollowedFile::Change;
  void write(const std::string& text, std::ios::openmode mode = std::ios::app) const {
    std::ofstream(path_, mode) << text;
  }
  Change poll() {
    lines_.clear();
    return file_.poll([this](std::string_view line) { lines_.emplace_back(line); });
  }
  tests::TempFolder folder_;
  fs::path path_ = folder_.path() / "file";
  FollowedFile file_{path_};
  std::vector<std::string> lines_;
};

/// A hole in a file of a terabyte must not keep a view from its next frame.
TEST_F(FollowedFileTest, ReadsAtMostAPartOfALongLineAtOnce) {
  write("one\n");
  fs::resize_file(path_, kMostSkippedBytes + kMostSkippedBytes / 4);
  write("\ntwo\n");
  EXPECT_EQ(poll(), Change::more);
  EXPECT_THAT(lines_, ElementsAre("one"));
  EXPECT_EQ(poll(), Change::more);
  EXPECT_THAT(lines_, ElementsAre("two"));
}

TEST_F(FollowedFileTest, GivesOutLinesOnceTheyAreComplete) {
  EXPECT_EQ(poll(), Change::none) << "there is no file yet";
  write("one\ntw");
  EXPECT_EQ(poll(), Change::more);
  EXPECT_THAT(lines_, ElementsAre("one"));
  EXPECT_TRUE(file_.has_incomplete_line());
  EXPECT_EQ(poll(), Change::none);
  write("o\nthree\n");
  EXPECT_EQ(poll(), Change::more);
  EXPECT_THAT(lines_, ElementsAre("two", "three"));
  EXPECT_GT(file_.written_at(), 0);
}

TEST_F(FollowedFileTest, ReadsLinesLongerThanABlock) {
  const std::string longer(1 << 20, 'x');
  write("a\n" + longer + "\nb\n");
  EXPECT_EQ(poll(), Change::more);
  EXPECT_THAT(lines_, ElementsAre("a", longer, "b"));
  EXPECT_EQ(poll(), Change::none) << "the last line is recognized";
}

TEST_F(FollowedFileTest, NoticesARollbackEvenIfTheFileHasGrownAgain) {
  write("one\ntwo\nthree\n");
  poll();
  fs::resize_file(path_, 4);
  EXPECT_EQ(poll(), Change::changed);
  EXPECT_THAT(lines_, IsEmpty());
  EXPECT_EQ(poll(), Change::more);
  EXPECT_THAT(lines_, ElementsAre("one"));
  write("TWO, and longer than before\n");
  poll();
  fs::resize_file(path_, 4);
  write("two\nthree\nfour, by which it is longer than before\n");
  EXPECT_EQ(poll(), Change::changed);
  EXPECT_EQ(poll(), Change::more);
  EXPECT_EQ(lines_.size(), 4u);
}

TEST_F(FollowedFileTest, NoticesAReplacedFile) {
  write("one\n");
  poll();
  std::ofstream(folder_.path() / "new") << "one\ntwo\n";
  fs::rename(folder_.path() / "new", path_);
  EXPECT_EQ(poll(), Change::changed);
  EXPECT_EQ(poll(), Change::more);
  EXPECT_THAT(lines_, ElementsAre("one", "two"));
}

TEST_F(FollowedFileTest, LeavesOutALongLineAndKeepsNoneInMemory) {
  write("one\n");
  std::filesystem::resize_file(path_, std::uintmax_t{256} << 20);
  const std::size_t before = tests::allocated_bytes();
  tests::reset_peak_allocated_bytes();
  poll();
  EXPECT_THAT(lines_, ElementsAre("one"));
  poll();
  EXPECT_THAT(lines_, IsEmpty());
  EXPECT_LT(tests::peak_allocated_bytes() - before, 4 * kMostLineBytes);
  EXPECT_LT(tests::allocated_bytes() - before, 4 * kMostLineBytes);
  EXPECT_TRUE(file_.has_incomplete_line());
  write("its end\ntwo\n");
  poll();
  EXPECT_THAT(lines_, ElementsAre("two"));
  EXPECT_FALSE(file_.has_incomplete_line());
}

}  // namespace
}  // namespace gradring::train
