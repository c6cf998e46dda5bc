// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/descriptor_limit.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "tests/support/no_more_files.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

rlim_t soft_limit() {
  rlimit limit{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  return limit.rlim_cur;
}

TEST(DescriptorLimit, IsRaisedAndRestored) {
  const tests::NoMoreFiles few;
  const rlim_t before = soft_limit();
  const DescriptorLimit raised;
  EXPECT_GT(soft_limit(), before);
  raised.restore_in_child();
  EXPECT_EQ(soft_limit(), before);
}

TEST(DescriptorLimit, TellsHowManyFilesMayBeOpened) {
  const std::size_t before = free_descriptors();
  {
    const UniqueFd one(::open("/dev/null", O_RDONLY)), two(::open("/dev/null", O_RDONLY));
    EXPECT_EQ(free_descriptors(), before - 2);
  }
  EXPECT_EQ(free_descriptors(), before);
  const tests::NoMoreFiles none;
  EXPECT_EQ(free_descriptors(), 0u);
}

TEST(DescriptorLimit, IsCheckedBeforeUse) {
  const tests::NoMoreFiles few;
  const rlim_t before = soft_limit();
  require_descriptors(8, "a test");
  EXPECT_GT(soft_limit(), before) << "it raises the limit first";
  rlimit hard{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &hard), 0);
  try {
    require_descriptors(hard.rlim_max, "rank 3 of 300");
    FAIL() << "some files are open";
  } catch (const DeviceError& error) {
    const std::string count = std::to_string(hard.rlim_max);
    EXPECT_THAT(error.what(), AllOf(StartsWith("rank 3 of 300 needs " + count + " more open files"),
                                    HasSubstr("the hard limit of this process is " + count), HasSubstr("ulimit -Hn")));
  }
}

}  // namespace
}  // namespace gradring
