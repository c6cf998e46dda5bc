// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <string>

#include "tests/support/temp_folder.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;

/// A file system's root with what a process sees of its control groups.
class CpuQuota : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const fs::path file = root() / fs::path(path).relative_path();
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  /// /proc/self/cgroup, and lines of /proc/self/mountinfo from the mounted group on.
  void process(const std::string& groups, const std::vector<std::string>& mounts) const {
    write("/proc/self/cgroup", groups);
    std::string lines = "22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/root rw\n";
    for (const std::string& mount : mounts) lines += "31 22 0:28 " + mount + "\n";
    write("/proc/self/mountinfo", lines);
  }
  void v1_limit(const std::string& group, const std::string& quota, const std::string& period) const {
    write(group + "/cpu.cfs_quota_us", quota + "\n");
    write(group + "/cpu.cfs_period_us", period + "\n");
  }
  std::optional<double> quota() const { return cpu_quota(root()); }
  fs::path root() const { return folder_.path(); }

  const std::string unified_ = "/ /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
  const std::string v1_ = "/ /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:11 - cgroup cgroup rw,cpu,cpuacct";

 private:
  const tests::TempFolder folder_;
};

TEST_F(CpuQuota, OfVersion2IsTheLeastOverTheNestedGroups) {
  process("0::/user.slice/a/b\n", {unified_});
  EXPECT_EQ(quota(), std::nullopt) << "the controller may be off";
  write("/sys/fs/cgroup/user.slice/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("/sys/fs/cgroup/user.slice/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 2.5) << "a group above limits all below";
  write("/sys/fs/cgroup/user.slice/a/cpu.max", "75000 50000\n");
  EXPECT_EQ(quota(), 1.5);
  write("/sys/fs/cgroup/user.slice/a/b/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  write("/sys/fs/cgroup/user.slice/other/cpu.max", "1000 100000\n");
  EXPECT_EQ(quota(), 1.5) << "the limit of another group";
}

TEST_F(CpuQuota, OfVersion1IsTheLeastOverTheNestedGroups) {
  process("9:name=systemd:/a/b\n4:cpu,cpuacct:/a/b\n3:cpuset:/elsewhere\n", {v1_});
  EXPECT_EQ(quota(), std::nullopt);
  v1_limit("/sys/fs/cgroup/cpu,cpuacct/a/b", "-1", "100000");
  EXPECT_EQ(quota(), std::nullopt);
  v1_limit("/sys/fs/cgroup/cpu,cpuacct/a", "120000", "100000");
  EXPECT_EQ(quota(), 1.2);
  v1_limit("/sys/fs/cgroup/cpu,cpuacct/elsewhere", "1000", "100000");
  EXPECT_EQ(quota(), 1.2);
}

TEST_F(CpuQuota, IsFoundBelowAControlGroupNamespacesRoot) {
  process("0::/\n", {unified_});
  write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  process("0::/inner\n", {unified_});
  write("/sys/fs/cgroup/inner/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
}

// Docker with version 1: /proc/self/cgroup has the host's path, and only the container's group is mounted.
TEST_F(CpuQuota, IsFoundWhereAContainersGroupIsBindMounted) {
  process("4:cpu,cpuacct:/docker/1a2b/inner\n",
          {"/docker/1a2b /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:11 - cgroup cgroup rw,cpu,cpuacct"});
  v1_limit("/sys/fs/cgroup/cpu,cpuacct", "400000", "100000");
  EXPECT_EQ(quota(), 4);
  v1_limit("/sys/fs/cgroup/cpu,cpuacct/inner", "300000", "100000");
  EXPECT_EQ(quota(), 3);
  v1_limit("/sys/fs/cgroup/cpu,cpuacct/docker/1a2b/inner", "100000", "100000");
  EXPECT_EQ(quota(), 3) << "another group of that name";
}

// The paths of the two files cannot be compared: the mount is older than the process's cgroup namespace, or of another.
TEST_F(CpuQuota, IsThatOfTheMountWhereTheProcesssGroupIsNotShown) {
  write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  for (const char* group : {"0::/../../elsewhere\n", "0::/docker/1a2bc\n", "", "0::/docker\n"}) {
    process(group, {"/docker/1a2b /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw"});
    EXPECT_EQ(quota(), 2) << group;
  }
}

TEST_F(CpuQuota, OfAMountThatShowsOtherGroupsDoesNotCount) {
  process("0::/mine\n", {"/docker/1a2b /containers/1a2b/cgroup ro,nosuid - cgroup2 cgroup rw", unified_});
  write("/containers/1a2b/cgroup/cpu.max", "1000 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("/sys/fs/cgroup/mine/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2);
}

// systemd's hybrid layout: version 2 without controllers beside version 1.
TEST_F(CpuQuota, IsTheLesserOfBothVersions) {
  process("1:cpu:/a\n0::/a\n",
          {"/ /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw", "/ /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset",
           "/ /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"});
  v1_limit("/sys/fs/cgroup/cpuset/a", "1000", "100000");
  v1_limit("/sys/fs/cgroup/cpu/a", "300000", "100000");
  EXPECT_EQ(quota(), 3);
  write("/sys/fs/cgroup/unified/a/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2);
}

TEST_F(CpuQuota, IsFoundAtEscapedPaths) {
  process("0::/my group/a:b\n", {"/my\\040group /run/control\\040groups\\134 rw - cgroup2 cgroup2 rw"});
  write("/run/control groups\\/a:b/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2);
}

TEST_F(CpuQuota, IsNoneWhereTheFilesSayNothing) {
  EXPECT_EQ(quota(), std::nullopt) << "no /proc";
  process("0::/\n", {unified_, "/ /cut - cgroup2", "/ /other rw - tmpfs tmpfs rw", ""});
  for (const char* text : {"", "max", "100000", "0 100000", "100000 0", "-1 100000", "x y", "nan 100000"}) {
    write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(quota(), std::nullopt) << text;
  }
}

TEST(Processors, AreThoseOfTheAffinityUpToTheQuotaRounded) {
  const auto usable = [](std::optional<double> quota) { return Processors{8, 4, quota}.usable(); };
  EXPECT_EQ(usable({}), 4);
  EXPECT_EQ(usable(64), 4);
  EXPECT_EQ(usable(4.4), 4);
  EXPECT_EQ(usable(3.5), 4);
  EXPECT_EQ(usable(3.49), 3);
  EXPECT_EQ(usable(1.5), 2);
  EXPECT_EQ(usable(1.49), 1);
  EXPECT_EQ(usable(0.01), 1);
  EXPECT_EQ(usable(1e300), 4);
}

TEST(Processors, OfThisProcessFollowItsAffinity) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(processors().affinity, CPU_COUNT(&before));
  EXPECT_GE(processors().online, 1);
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(processors().affinity, 1);
  EXPECT_EQ(usable_processors(), 1);
  EXPECT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace gradring
