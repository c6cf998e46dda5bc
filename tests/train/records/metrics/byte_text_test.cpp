// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/byte_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace gradring::train {
namespace {

constexpr double kMebibyte = 1024 * 1024;

TEST(ByteText, OfMemoryIsInPowersOf1024) {
  EXPECT_EQ(memory_text(0), "0 B");
  EXPECT_EQ(memory_text(512), "512 B");
  EXPECT_EQ(memory_text(1000), "0.98 KiB") << "no four digits";
  EXPECT_EQ(memory_text(3.5 * kMebibyte), "3.50 MiB");
  EXPECT_EQ(memory_text(24.42 * kMebibyte), "24.4 MiB");
  EXPECT_EQ(memory_text(512 * kMebibyte), "512 MiB");
  EXPECT_EQ(memory_text(80 * 1024 * kMebibyte), "80.0 GiB");
  EXPECT_EQ(memory_text(std::numeric_limits<double>::quiet_NaN()), "-");
}

TEST(ByteText, OfFilesIsInPowersOf1000) {
  EXPECT_EQ(file_size_text(999), "999 B");
  EXPECT_EQ(file_size_text(1725952), "1.73 MB");
  EXPECT_EQ(file_size_text(99'960'000), "100 MB");
  EXPECT_EQ(file_size_text(2e9), "2.00 GB");
  EXPECT_EQ(file_size_text(1e18), "1000 PB");
}

}  // namespace
}  // namespace gradring::train
