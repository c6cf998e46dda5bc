// SPDX-License-Identifier: Apache-2.0
// The launcher where a container's seccomp filter or SELinux denies system calls, or an old kernel lacks them. Skipped
// where the kernel has no filters.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "kernels/simt/engine/sanitizer.h"
#include "tests/train/launch/launcher_fixture.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class LauncherWithoutSystemCall : public LauncherFixture, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    constexpr int kNoFilter = 77;
    if (run(without(SYS_pidfd_open, {"train"})) == kNoFilter) GTEST_SKIP() << "the kernel has no seccomp filters here";
  }
  Words without(long call, const Words& words) const {
    Words all = {"deny", std::to_string(call), std::to_string(GetParam())};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  /// The numbers of the reaper's open files.
  Words files_of_reaper() const {
    Words files;
    for (const pid_t process : processes_with(folder_.mark()))
      if (process_name(process) == "gradring-reaper")
        for (const auto& file : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process)))
          files.push_back(file.path().filename());
    std::ranges::sort(files);
    return files;
  }
};

TEST_P(LauncherWithoutSystemCall, ForwardsTheFirstFailureWithoutPidfds) {
  const Words words = {"launch", "--nproc-per-node", "2", "train", "mark=up", "1:await=up.0", "1:exit=7", "sleep"};
  EXPECT_EQ(run(without(SYS_pidfd_open, words)), 7);
  EXPECT_THAT(errors(), HasSubstr("exited with code 7, the first to fail"));
  EXPECT_EQ(std::ranges::count(errors(), '\n'), 1) << errors();
}

TEST_P(LauncherWithoutSystemCall, SpawnsAndRestartsWithoutPidfds) {
  EXPECT_EQ(run(without(SYS_pidfd_open, {"spawn", "2", "exit=0"})), 0);
  const Words words = {"launch", "--nproc-per-node", "2", "--max-restarts", "1", "train", "@0:1:exit=3", "@0:sleep"};
  EXPECT_EQ(run(without(SYS_pidfd_open, words)), 0);
}

TEST_P(LauncherWithoutSystemCall, KillsAfterASecondInterruptWithoutPidfds) {
  const std::string ignore = fmt::format("ignore={}", SIGINT);
  RunningLauncher launcher(folder_, without(SYS_pidfd_open, {"launch", "train", ignore, "mark=up", "sleep"}));
  launcher.await_mark("up", 0);
  launcher.send(SIGINT);
  ASSERT_TRUE(eventually([&] { return errors().find("a second one kills them") != std::string::npos; }));
  launcher.send(SIGINT);
  EXPECT_EQ(launcher.wait(), 128 + SIGINT);
}

/// The reaper outlives a killed launcher and must not keep its files open.
TEST_P(LauncherWithoutSystemCall, LeavesTheReaperNoFileWithoutCloseRange) {
  RunningLauncher launcher(folder_, without(SYS_close_range, {"launch", "train", "mark=up", "await=go"}));
  launcher.await_mark("up", 0);
  const Words own = {"0", "1", "2", "3", "4"};  // /dev/null, the launcher's messages, the lock of the run folder
  EXPECT_TRUE(eventually([&] { return files_of_reaper() == own; }))
      << fmt::format("{}", fmt::join(files_of_reaper(), " "));
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
}

using LauncherWithoutProcesses = LauncherFixture;

TEST_F(LauncherWithoutProcesses, NamesTheLimits) {
  const Words words = {"deny", std::to_string(SYS_clone), std::to_string(EAGAIN), "launch", "train", "exit=0"};
  const int code = run(words);
  if (code == 77) GTEST_SKIP() << "the kernel has no seccomp filters here";
  EXPECT_EQ(code, simt::detail::kAddressSanitizer ? 1 : 3) << "at the end, LeakSanitizer starts a process, too";
  EXPECT_THAT(errors(), HasSubstr("cannot start the launcher's reaper process: Resource temporarily unavailable "));
  EXPECT_THAT(errors(), HasSubstr("(ulimit -u is "));
  EXPECT_THAT(errors(), HasSubstr("); raise that limit, or start fewer processes\n"));
  EXPECT_THAT(errors(), ::testing::Not(HasSubstr(".cpp")));
}

INSTANTIATE_TEST_SUITE_P(Errors, LauncherWithoutSystemCall, ::testing::Values(ENOSYS, EPERM, EACCES));

}  // namespace
}  // namespace gradring::train
