// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/available_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/support/temp_folder.h"

namespace gradring {
namespace {

/// A file system of a machine with 8 MiB available.
class AvailableMemory : public ::testing::Test {
 protected:
  AvailableMemory() {
    put("proc/meminfo", "MemTotal:       99999 kB\nMemFree:  1 kB\nMemAvailable:       8192 kB\n");
    put("proc/self/mountinfo",
        "31 22 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
        "32 22 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  }

  void put(const std::string& name, std::string_view text) const {
    root_.write(name, tests::Bytes(text.begin(), text.end()));
  }
  std::uint64_t kibibytes() const { return available_memory(root_.path()) / 1024; }

  const tests::TempFolder root_;
};

TEST_F(AvailableMemory, IsTheKernelsEstimate) { EXPECT_EQ(kibibytes(), 8192u); }

TEST_F(AvailableMemory, IsLimitedByEveryGroupAbove) {
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/memory.max", "4194304\n");
  put("sys/fs/cgroup/a/memory.current", "2097152\n");
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(kibibytes(), 2048u);
  put("sys/fs/cgroup/a/memory.stat", "anon 1048576\ninactive_file 524288\nactive_file 524288\n");
  EXPECT_EQ(kibibytes(), 3072u) << "the kernel drops pages of files";
  put("sys/fs/cgroup/a/b/memory.max", "1024\n");
  EXPECT_EQ(kibibytes(), 1u);
  put("sys/fs/cgroup/a/b/memory.current", "4096\n");
  EXPECT_EQ(kibibytes(), 0u);
}

TEST_F(AvailableMemory, IsLimitedByTheGroupOfAContainerThatSeesItAsTheRoot) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/docker/1\n4:hugetlb,memory:/docker/1\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "3145728\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
  EXPECT_EQ(kibibytes(), 2048u);
}

TEST_F(AvailableMemory, IsUnlimitedWhereNothingIsKnown) {
  const tests::TempFolder nothing;
  EXPECT_GT(available_memory(nothing.path()), std::uint64_t{1} << 40);
}

TEST(LackOfMemory, NamesBothSizes) {
  EXPECT_EQ(lack_of_memory(1), "");
  EXPECT_THAT(lack_of_memory(std::uint64_t{1} << 60),
              ::testing::MatchesRegex("1099511627776 MiB of memory, but [0-9]+ MiB are available"));
}

}  // namespace
}  // namespace gradring
