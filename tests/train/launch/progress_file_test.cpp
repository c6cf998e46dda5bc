// SPDX-License-Identifier: Apache-2.0
#include "train/launch/progress_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/train/launch/running_launcher.h"

namespace gradring::train {
namespace {

TEST(ProgressFile, IsReadBack) {
  const TestFolder folder;
  const std::string path = folder.path() / "progress";
  EXPECT_FALSE(read_progress(path));
  for (const std::int64_t step : {std::int64_t(0), std::int64_t(7), std::int64_t(1) << 40}) {
    ASSERT_TRUE(write_progress(path, step));
    EXPECT_EQ(read_progress(path), step);
  }
}

TEST(ProgressFile, IsNotWrittenWhereNobodyAsked) {
  EXPECT_FALSE(write_progress("", 1));
  EXPECT_FALSE(write_progress("/no/such/folder/progress", 1));
}

TEST(ProgressFile, MayBeWrittenByAShell) {
  const TestFolder folder;
  std::ofstream(folder.path() / "p") << "12\n";
  EXPECT_EQ(read_progress(folder.path() / "p"), 12);
  for (const char* text : {"", "x", "-1", "1x", "99999999999999999999"}) {
    std::ofstream(folder.path() / "p") << text << std::flush;
    EXPECT_FALSE(read_progress(folder.path() / "p")) << text;
  }
}

}  // namespace
}  // namespace gradring::train
