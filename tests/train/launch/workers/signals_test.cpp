// SPDX-License-Identifier: Apache-2.0
// Signals to the launcher: forwarded, ending the run, or killing it.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include <filesystem>
#include <random>
#include <thread>

#include "kernels/base/file.h"
#include "tests/train/launch/process_table.h"
#include "tests/train/launch/running_launcher.h"
#include "train/launch/workers/signals.h"

namespace gradring::train {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class LauncherSignals : public ::testing::Test {
 protected:
  ~LauncherSignals() override {
    EXPECT_TRUE(nothing_runs()) << "processes are left";
    EXPECT_TRUE(eventually([&] { return folder_.run_folders().empty(); })) << "a folder is left";
  }

  bool nothing_runs() const {
    return eventually([&] { return processes_with(folder_.mark()).empty(); });
  }
  bool errors_contain(const std::string& text) const {
    return eventually([&] { return folder_.text("stderr").find(text) != std::string::npos; });
  }
  /// The reaper once it has set its name, which it does after closing its files; -1 on a timeout.
  pid_t reaper_of(const RunningLauncher& launcher) const {
    pid_t reaper = -1;
    EXPECT_TRUE(eventually([&] {
      for (const pid_t child : children_of(launcher.pid()))
        if (process_name(child) == "gradring-reaper") reaper = child;
      return reaper > 0;
    }));
    return reaper;
  }

  TestFolder folder_;
};

TEST_F(LauncherSignals, ForwardsCtrlCAndWaits) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "1:ignore=2", "mark=up", "0:sleep",
                                     "await=go", "mark=saved"});
  launcher.await_mark("up", 0);
  launcher.await_mark("up", 1);
  launcher.send(SIGINT);
  ASSERT_TRUE(errors_contain("SIGINT: waiting up to 30 s for the workers to end; a second one kills them"));
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 130);
  launcher.await_mark("saved", 1);
}

TEST_F(LauncherSignals, KillsAfterASecondCtrlC) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "ignore=2", "mark=up", "sleep"});
  launcher.await_mark("up", 0);
  launcher.await_mark("up", 1);
  launcher.send(SIGINT);
  ASSERT_TRUE(errors_contain("SIGINT: waiting"));
  launcher.send(SIGINT);
  EXPECT_EQ(launcher.wait(), 130);
  EXPECT_TRUE(errors_contain("killing the workers"));
}

TEST_F(LauncherSignals, StopsOnSigintIfTheShellIgnoresIt) {
  RunningLauncher launcher(folder_, {"launch", "train", "mark=up", "sleep"}, {SIGINT});
  launcher.await_mark("up", 0);
  launcher.send(SIGINT);
  EXPECT_EQ(launcher.wait(), 130);
}

TEST_F(LauncherSignals, ReturnsACodePerStoppingSignal) {
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT}) {
    TestFolder folder;
    RunningLauncher launcher(folder, {"launch", "--nproc-per-node", "2", "train", "mark=up", "sleep"});
    launcher.await_mark("up", 0);
    launcher.send(number);
    EXPECT_EQ(launcher.wait(), number == SIGQUIT ? 131 : 143) << number;
  }
}

TEST_F(LauncherSignals, EndsOnSigusr1IfHandled) {
  RunningLauncher launcher(folder_, {"launch", "--signals_to_handle=SIGTERM,SIGUSR1", "train", "ignore=10", "mark=up",
                                     "await=go", "exit=0"});
  launcher.await_mark("up", 0);
  launcher.send(SIGUSR1);
  ASSERT_TRUE(errors_contain("SIGUSR1: waiting up to 30 s for the workers to end"));
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 143);
}

TEST_F(LauncherSignals, DiesOfUnhandledSignalsAndLeavesNothing) {
  RunningLauncher launcher(folder_, {"launch", "--signals-to-handle=SIGINT", "train", "ignore=15", "mark=up", "sleep"});
  launcher.await_mark("up", 0);
  launcher.send(SIGTERM);
  EXPECT_EQ(launcher.wait(), -SIGTERM);
}

TEST_F(LauncherSignals, ForwardsSignalsUnchangedExceptSigquit) {
  constexpr int kEndedByItself = 33;
  const std::pair<int, int> codes[] = {
      {SIGTERM, 143}, {SIGHUP, 143}, {SIGQUIT, 131}, {SIGUSR1, kEndedByItself}, {SIGUSR2, kEndedByItself}};
  for (const auto& [number, code] : codes) {
    TestFolder folder;
    const int forwarded = number == SIGQUIT ? SIGTERM : number;
    RunningLauncher launcher(folder, {"launch", "train", "exit-on=" + std::to_string(forwarded), "mark=up", "sleep"});
    launcher.await_mark("up", 0);
    launcher.send(number);
    EXPECT_EQ(launcher.wait(), code) << number;
  }
}

TEST_F(LauncherSignals, FailsIfAForwardedSignalKillsAWorker) {
  for (const int number : {SIGUSR1, SIGUSR2}) {
    TestFolder folder;
    RunningLauncher launcher(folder, {"launch", "--nproc-per-node=2", "train", "mark=up", "sleep"});
    launcher.await_mark("up", 0);
    launcher.await_mark("up", 1);
    launcher.send(number);
    EXPECT_EQ(launcher.wait(), 128 + number);
  }
}

TEST_F(LauncherSignals, SecondSigtermDoesNotShortenTheGracePeriod) {
  RunningLauncher launcher(folder_, {"launch", "train", "ignore=15", "mark=up", "await=go", "mark=saved"});
  launcher.await_mark("up", 0);
  launcher.send(SIGTERM);
  ASSERT_TRUE(errors_contain("SIGTERM: waiting"));
  launcher.send(SIGTERM);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 143);
  launcher.await_mark("saved", 0);
}

TEST_F(LauncherSignals, ReportsAFailureDuringShutdown) {
  RunningLauncher launcher(folder_,
                           {"launch", "train", "ignore=15", "mark=up", "await=go", "report=disk full", "exit=1"});
  launcher.await_mark("up", 0);
  launcher.send(SIGTERM);
  ASSERT_TRUE(errors_contain("SIGTERM: waiting"));
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 1);
  EXPECT_TRUE(errors_contain("exited with code 1: disk full"));
}

TEST_F(LauncherSignals, IgnoresRanksThatBlameAnInterruptedPeer) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "1:ignore=2", "mark=up", "0:sleep",
                                     "await=go", "report=rank 0 is lost", "exit=161"});
  launcher.await_mark("up", 0);
  launcher.await_mark("up", 1);
  launcher.send(SIGINT);
  ASSERT_TRUE(errors_contain("SIGINT: waiting"));
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 130);
}

TEST_F(LauncherSignals, KeepsSighupIgnoredUnderNohup) {
  RunningLauncher launcher(folder_, {"launch", "train", "mark=up", "await=go"}, {SIGHUP});
  launcher.await_mark("up", 0);
  launcher.send(SIGHUP);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
}

TEST_F(LauncherSignals, CtrlZSuspendsTheWorkersToo) {
  RunningLauncher launcher(folder_, {"launch", "train", "mark=up", "await=go"});
  const pid_t worker = launcher.await_mark("up", 0);
  launcher.send(SIGTSTP);
  EXPECT_TRUE(eventually([&] { return process_state(launcher.pid()) == "T" && process_state(worker) == "T"; }));
  launcher.send(SIGCONT);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
}

TEST_F(LauncherSignals, LeavesNothingWhenKilled) {
  RunningLauncher launcher(
      folder_, {"launch", "--nproc-per-node", "3", "train", "ignore=15", "child=child", "mark=up", "sleep"});
  for (int rank = 0; rank < 3; ++rank) {
    launcher.await_mark("up", rank);
    launcher.await_mark("child", rank);
  }
  EXPECT_THAT(processes_with(folder_.mark()), SizeIs(8));  // launcher, reaper, workers and their children
  launcher.send(SIGKILL);
  EXPECT_EQ(launcher.wait(), -SIGKILL);
}

TEST_F(LauncherSignals, LeavesOnlyAStaleFolderWhenKilledWithItsReaper) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "mark=up", "sleep"});
  launcher.await_mark("up", 0);
  launcher.await_mark("up", 1);
  signal_process(reaper_of(launcher), SIGKILL);
  launcher.send(SIGKILL);
  EXPECT_EQ(launcher.wait(), -SIGKILL);
  EXPECT_TRUE(nothing_runs());
  EXPECT_THAT(folder_.run_folders(), SizeIs(1));

  RunningLauncher next(folder_, {"launch", "train", "exit=0"});
  EXPECT_EQ(next.wait(), 0);
  EXPECT_THAT(folder_.run_folders(), IsEmpty());
}

TEST_F(LauncherSignals, ReaperKeepsNoFileOfAKilledLauncherOpen) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // as that of `gradring launch ... | tee`
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  ASSERT_EQ(::fcntl(read_end.get(), F_SETFD, FD_CLOEXEC), 0);
  RunningLauncher launcher(folder_, {"launch", "train", "mark=up", "sleep"});
  write_end.reset();
  launcher.await_mark("up", 0);
  const pid_t reaper = reaper_of(launcher);
  for (int stream = 0; stream <= STDERR_FILENO; ++stream)
    EXPECT_EQ(std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", reaper, stream)), "/dev/null");
  signal_process(reaper, SIGSTOP);  // as if it had a large folder to remove
  launcher.send(SIGKILL);
  EXPECT_EQ(launcher.wait(), -SIGKILL);
  pollfd closed = {read_end.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&closed, 1, 20'000), 1);
  signal_process(reaper, SIGCONT);
}

TEST_F(LauncherSignals, RunSurvivesTheDeathOfItsReaper) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "mark=up", "await=go"});
  launcher.await_mark("up", 0);
  signal_process(reaper_of(launcher), SIGKILL);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
}

TEST_F(LauncherSignals, LeavesNothingWheneverItIsKilled) {
  constexpr unsigned kSeed = 20;
  constexpr int kRuns = 25;
  RecordProperty("seed", kSeed);
  std::mt19937 random(kSeed);
  for (int i = 0; i < kRuns; ++i) {
    const auto moment = std::chrono::microseconds(random() % 40'000);
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", run " << i << ", after " << moment.count() << " us");
    RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "3", "train", "child=child", "sleep"});
    std::this_thread::sleep_for(moment);
    launcher.send(SIGKILL);
    EXPECT_EQ(launcher.wait(), -SIGKILL);
    EXPECT_TRUE(nothing_runs());
    EXPECT_THAT(folder_.run_folders(), IsEmpty());
  }
}

TEST(SignalName, MatchesTheKernels) {
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(63), "signal 63");
}

TEST(StoppingSignal, AcceptsSignalsThatMayEndARun) {
  EXPECT_EQ(stopping_signal("SIGTERM"), SIGTERM);
  EXPECT_EQ(stopping_signal("SIGQUIT"), SIGQUIT);
  EXPECT_EQ(stopping_signal("SIGUSR1"), SIGUSR1) << "as torchrun's --signals-to-handle takes it";
  for (const char* name : {"", "TERM", "sigterm", "SIGKILL", "SIGSTOP", "15"})
    EXPECT_EQ(stopping_signal(name), 0) << name;
}

TEST(ExitCodeAfter, TreatsOtherSignalsAsSigterm) {
  EXPECT_EQ(exit_code_after(SIGINT), 130);
  EXPECT_EQ(exit_code_after(SIGQUIT), 131);
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) EXPECT_EQ(exit_code_after(signal), 143) << signal;
}

}  // namespace
}  // namespace gradring::train
