// SPDX-License-Identifier: Apache-2.0
#include "train/runs/followed_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/allocated_bytes.h"
#include "tests/support/temp_folder.h"
#include "train/report/metrics_lines.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Followed : public ::testing::Test {
 protected:
  std::vector<std::string> lines() {
    std::vector<std::string> lines;
    file_.poll([&lines](std::string_view line) { lines.emplace_back(line); });
    return lines;
  }
  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }

  tests::TempFolder folder_;
  std::filesystem::path path_ = folder_.path() / "log";
  FollowedFile file_{path_};
};

TEST_F(Followed, GivesOutALineWhenItIsComplete) {
  EXPECT_THAT(lines(), IsEmpty());
  append("one\n\ntw");
  EXPECT_THAT(lines(), ElementsAre("one", ""));
  EXPECT_TRUE(file_.has_incomplete_line());
  append("o\nthree\n");
  EXPECT_THAT(lines(), ElementsAre("two", "three"));
  EXPECT_FALSE(file_.has_incomplete_line());
}

TEST_F(Followed, LeavesOutALongLineAndKeepsNoneInMemory) {
  append("one\n");
  std::filesystem::resize_file(path_, std::uintmax_t{256} << 20);
  const std::size_t before = tests::allocated_bytes();
  tests::reset_peak_allocated_bytes();
  EXPECT_THAT(lines(), ElementsAre("one"));
  EXPECT_THAT(lines(), IsEmpty());
  EXPECT_LT(tests::peak_allocated_bytes() - before, 4 * kMostLineBytes);
  EXPECT_LT(tests::allocated_bytes() - before, 4 * kMostLineBytes);
  EXPECT_TRUE(file_.has_incomplete_line());
  append("its end\ntwo\n");
  EXPECT_THAT(lines(), ElementsAre("two"));
  EXPECT_FALSE(file_.has_incomplete_line());
}

TEST_F(Followed, BeginsAgainIfTheFileBecomesShorterOrOther) {
  append("one\ntwo\n");
  EXPECT_THAT(lines(), ElementsAre("one", "two"));
  std::ofstream(path_) << "eno\nowt\nthree\n";
  EXPECT_THAT(lines(), IsEmpty()) << "they are told of the change first";
  EXPECT_THAT(lines(), ElementsAre("eno", "owt", "three"));
}

}  // namespace
}  // namespace gradring::train
