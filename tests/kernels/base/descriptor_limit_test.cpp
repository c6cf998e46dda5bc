// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/descriptor_limit.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <optional>

#include "kernels/base/file.h"
#include "tests/support/no_more_files.h"

namespace gradring {
namespace {

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

}  // namespace
}  // namespace gradring
