// SPDX-License-Identifier: Apache-2.0
// What happens when somebody stops, suspends or kills the launcher.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <random>
#include <thread>

#include "tests/train/launch/process_table.h"
#include "tests/train/launch/running_launcher.h"
#include "train/launch/signal_name.h"

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
  bool errors_say(const std::string& text) const {
    return eventually([&] { return folder_.text("stderr").find(text) != std::string::npos; });
  }
  /// The guard, as soon as it has given itself its name; -1 if it never does.
  pid_t guard_of(const RunningLauncher& launcher) const {
    pid_t guard = -1;
    EXPECT_TRUE(eventually([&] {
      for (const pid_t child : children_of(launcher.pid()))
        if (process_name(child) == "gradring-guard") guard = child;
      return guard > 0;
    }));
    return guard;
  }

  TestFolder folder_;
};

TEST_F(LauncherSignals, CtrlCOnceIsForwardedAndWaitsForTheWorkers) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "1:ignore=2", "mark=up", "0:sleep",
                                     "await=go", "mark=saved"});
  launcher.await_mark("up", 0);
  launcher.await_mark("up", 1);
  launcher.send(SIGINT);
  ASSERT_TRUE(errors_say("SIGINT: waiting up to 30 s for the workers to end; once more kills them"));
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 130);
  launcher.await_mark("saved", 1);
}

TEST_F(LauncherSignals, CtrlCTwiceKills) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "ignore=2", "mark=up", "sleep"});
  launcher.await_mark("up", 0);
  launcher.await_mark("up", 1);
  launcher.send(SIGINT);
  ASSERT_TRUE(errors_say("SIGINT: waiting"));
  launcher.send(SIGINT);
  EXPECT_EQ(launcher.wait(), 130);
  EXPECT_TRUE(errors_say("killing the workers"));
}

TEST_F(LauncherSignals, SigintWorksWhereTheShellIgnoresIt) {
  RunningLauncher launcher(folder_, {"launch", "train", "mark=up", "sleep"}, {SIGINT});
  launcher.await_mark("up", 0);
  launcher.send(SIGINT);
  EXPECT_EQ(launcher.wait(), 130);
}

TEST_F(LauncherSignals, StoppingSignalsHaveTheirCodes) {
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT}) {
    TestFolder folder;
    RunningLauncher launcher(folder, {"launch", "--nproc-per-node", "2", "train", "mark=up", "sleep"});
    launcher.await_mark("up", 0);
    launcher.send(number);
    EXPECT_EQ(launcher.wait(), number == SIGQUIT ? 131 : 143) << number;
  }
}

TEST_F(LauncherSignals, Sigusr1EndsTheRunWhereItIsToBeHandled) {
  RunningLauncher launcher(folder_, {"launch", "--signals_to_handle=SIGTERM,SIGUSR1", "train", "ignore=10", "mark=up",
                                     "await=go", "exit=0"});
  launcher.await_mark("up", 0);
  launcher.send(SIGUSR1);
  ASSERT_TRUE(errors_say("SIGUSR1: waiting up to 30 s for the workers to end"));
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 143);
}

TEST_F(LauncherSignals, NotHandledEndTheLauncherAtOnceAndLeaveNothing) {
  RunningLauncher launcher(folder_, {"launch", "--signals-to-handle=SIGINT", "train", "ignore=15", "mark=up", "sleep"});
  launcher.await_mark("up", 0);
  launcher.send(SIGTERM);
  EXPECT_EQ(launcher.wait(), -SIGTERM);
}

TEST_F(LauncherSignals, ForwardedReachTheWorkersAsTheyAre) {
  constexpr int kEndedByItself = 33;
  const std::pair<int, int> codes[] = {
      {SIGTERM, 143}, {SIGHUP, 143}, {SIGQUIT, 131}, {SIGUSR1, kEndedByItself}, {SIGUSR2, kEndedByItself}};
  for (const auto& [number, code] : codes) {
    TestFolder folder;
    RunningLauncher launcher(folder, {"launch", "train", "exit-on=" + std::to_string(number), "mark=up", "sleep"});
    launcher.await_mark("up", 0);
    launcher.send(number);
    EXPECT_EQ(launcher.wait(), code) << number;
  }
}

TEST_F(LauncherSignals, ThatKillAProgramAreNoSuccess) {
  for (const int number : {SIGUSR1, SIGUSR2}) {
    TestFolder folder;
    RunningLauncher launcher(folder, {"launch", "--nproc-per-node=2", "train", "mark=up", "sleep"});
    launcher.await_mark("up", 0);
    launcher.await_mark("up", 1);
    launcher.send(number);
    EXPECT_EQ(launcher.wait(), 128 + number);
  }
}

TEST_F(LauncherSignals, SigtermTwiceDoesNotCutALastCheckpointShort) {
  RunningLauncher launcher(folder_, {"launch", "train", "ignore=15", "mark=up", "await=go", "mark=saved"});
  launcher.await_mark("up", 0);
  launcher.send(SIGTERM);
  ASSERT_TRUE(errors_say("SIGTERM: waiting"));
  launcher.send(SIGTERM);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 143);
  launcher.await_mark("saved", 0);
}

TEST_F(LauncherSignals, AWorkerThatCannotDoItsLastWorkIsHeard) {
  RunningLauncher launcher(folder_,
                           {"launch", "train", "ignore=15", "mark=up", "await=go", "report=disk full", "exit=1"});
  launcher.await_mark("up", 0);
  launcher.send(SIGTERM);
  ASSERT_TRUE(errors_say("SIGTERM: waiting"));
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 1);
  EXPECT_TRUE(errors_say("exited with code 1: disk full"));
}

TEST_F(LauncherSignals, AWorkerThatOnlyMissesAnInterruptedPeerIsNotTheCause) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "1:ignore=2", "mark=up", "0:sleep",
                                     "await=go", "report=rank 0 is lost", "exit=161"});
  launcher.await_mark("up", 0);
  launcher.await_mark("up", 1);
  launcher.send(SIGINT);
  ASSERT_TRUE(errors_say("SIGINT: waiting"));
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 130);
}

TEST_F(LauncherSignals, NohupHolds) {
  RunningLauncher launcher(folder_, {"launch", "train", "mark=up", "await=go"}, {SIGHUP});
  launcher.await_mark("up", 0);
  launcher.send(SIGHUP);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
}

TEST_F(LauncherSignals, CtrlZStopsTheWorkersTooUntilTheyAreContinued) {
  RunningLauncher launcher(folder_, {"launch", "train", "mark=up", "await=go"});
  const pid_t worker = launcher.await_mark("up", 0);
  launcher.send(SIGTSTP);
  EXPECT_TRUE(eventually([&] { return process_state(launcher.pid()) == "T" && process_state(worker) == "T"; }));
  launcher.send(SIGCONT);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
}

TEST_F(LauncherSignals, KilledLauncherLeavesNothing) {
  RunningLauncher launcher(
      folder_, {"launch", "--nproc-per-node", "3", "train", "ignore=15", "child=child", "mark=up", "sleep"});
  for (int rank = 0; rank < 3; ++rank) {
    launcher.await_mark("up", rank);
    launcher.await_mark("child", rank);
  }
  EXPECT_THAT(processes_with(folder_.mark()), SizeIs(8));  // launcher, guard, workers and their children
  launcher.send(SIGKILL);
  EXPECT_EQ(launcher.wait(), -SIGKILL);
}

TEST_F(LauncherSignals, KilledWithItsGuardItLeavesNoWorkerAndTheNextOneSweepsTheFolder) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "mark=up", "sleep"});
  launcher.await_mark("up", 0);
  launcher.await_mark("up", 1);
  signal_process(guard_of(launcher), SIGKILL);
  launcher.send(SIGKILL);
  EXPECT_EQ(launcher.wait(), -SIGKILL);
  EXPECT_TRUE(nothing_runs());
  EXPECT_THAT(folder_.run_folders(), SizeIs(1));

  RunningLauncher next(folder_, {"launch", "train", "exit=0"});
  EXPECT_EQ(next.wait(), 0);
  EXPECT_THAT(folder_.run_folders(), IsEmpty());
}

TEST_F(LauncherSignals, ARunSurvivesTheDeathOfItsGuard) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "mark=up", "await=go"});
  launcher.await_mark("up", 0);
  signal_process(guard_of(launcher), SIGKILL);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
}

TEST_F(LauncherSignals, KilledAtAnyMomentItLeavesNothing) {
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
  }
  // Killed before its guard was there, a launcher leaves its folder to the next one.
  RunningLauncher last(folder_, {"launch", "train", "exit=0"});
  EXPECT_EQ(last.wait(), 0);
}

}  // namespace
}  // namespace gradring::train
