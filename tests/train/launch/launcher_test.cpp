// SPDX-License-Identifier: Apache-2.0
#include "train/launch/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "kernels/runtime/error.h"
#include "tests/train/launch/launcher_fixture.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class Launcher : public LauncherFixture {
 protected:
  std::ptrdiff_t error_lines() const { return std::ranges::count(errors(), '\n'); }
};

TEST_F(Launcher, ReturnsZeroAndSaysNothingWhenAllIsWell) {
  EXPECT_EQ(run({"launch", "--nproc-per-node", "3", "train", "exit=0"}), 0);
  EXPECT_EQ(errors(), "");
}

TEST_F(Launcher, PassesOnTheWorkersCode) {
  for (const int code : {1, 2, 7, 126, 127, 161, 255})
    EXPECT_EQ(run({"launch", "train", "exit=" + std::to_string(code)}), code);
}

TEST_F(Launcher, TurnsASignalIntoACode) {
  for (const int number : {SIGKILL, SIGSEGV, SIGABRT, SIGTERM})
    EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "train", "1:raise=" + std::to_string(number), "sleep"}),
              128 + number);
  EXPECT_THAT(errors(), HasSubstr("rank 1 of 2 "));
  EXPECT_THAT(errors(), HasSubstr("was killed by signal 9 (SIGKILL), the first to fail"));
}

TEST_F(Launcher, FirstFailureStopsTheOthersAndWins) {
  const int code = run({"launch", "--nproc-per-node", "4", "train", "exit-on=15", "mark=up", "2:await=up.0",
                        "2:await=up.1", "2:await=up.3", "2:exit=7", "sleep"});
  EXPECT_EQ(code, 7);  // and not 33, which the others return when they are stopped
  EXPECT_EQ(error_lines(), 1) << errors();
  EXPECT_THAT(errors(), HasSubstr("rank 2 of 4 "));
  EXPECT_THAT(errors(), HasSubstr("exited with code 7, the first to fail"));
}

TEST_F(Launcher, WaitsForThePeerThatIsBlamed) {
  EXPECT_EQ(
      run({"launch", "--nproc-per-node", "2", "train", "1:exit=161", "pause=100", "report=the disk is full", "exit=3"}),
      3);
  EXPECT_THAT(errors(), HasSubstr("exited with code 3, the first to fail: the disk is full"));
}

TEST_F(Launcher, StopsTheOthersIfNobodyElseFails) {
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "train", "1:exit=161", "sleep"}), 161);
  EXPECT_EQ(error_lines(), 1) << errors();
}

TEST_F(Launcher, AWorkerThatEndsWellStopsNobody) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "1:exit=0", "mark=up", "await=go"});
  const pid_t worker = launcher.await_mark("up", 0);
  // What is left below the launcher is rank 0 and the guard; no zombie of rank 1.
  EXPECT_TRUE(eventually([&] { return children_of(launcher.pid()).size() == 2; }));
  EXPECT_THAT(process_state(worker), ::testing::AnyOf("R", "S", "D"));
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
}

TEST_F(Launcher, KillsAWorkerThatIgnoresSigterm) {
  EXPECT_EQ(run({"launch", "--kill-grace", "0.1", "--nproc-per-node", "2", "train", "0:ignore=15", "0:mark=up",
                 "1:await=up.0", "1:exit=5", "sleep"}),
            5);
  EXPECT_THAT(errors(), HasSubstr("rank 0 (pid "));
  EXPECT_THAT(errors(), HasSubstr("did not end within 0.1 s: killing"));
}

TEST_F(Launcher, StopsAWorkerThatIsSuspended) {
  RunningLauncher launcher(folder_,
                           {"launch", "--nproc-per-node", "2", "train", "mark=up", "1:await=go", "1:exit=5", "sleep"});
  signal_process(launcher.await_mark("up", 0), SIGSTOP);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 5);
}

TEST_F(Launcher, KillsWhatAWorkerLeavesInItsGroup) {
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "train", "child=child", "await=child.0", "1:exit=4", "sleep"}), 4);
}

TEST_F(Launcher, ShowsTheWorkersOwnMessageOnceAndLast) {
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "train", "1:report=no such file: labels.gz", "1:exit=4", "sleep"}),
            4);
  EXPECT_EQ(error_lines(), 1) << errors();
  EXPECT_THAT(errors(), ::testing::EndsWith("exited with code 4, the first to fail: no such file: labels.gz\n"));
}

TEST_F(Launcher, SaysOnceThatACommandIsNotThere) {
  EXPECT_EQ(run({"launch", "--nproc-per-node", "4", "--", "/no/such/program"}), 127);
  EXPECT_EQ(errors(), "gradring launch: cannot run '/no/such/program': No such file or directory\n");
}

TEST_F(Launcher, LooksCommandsUpAlongThePath) {
  EXPECT_EQ(run({"launch", "--", "true"}), 0);
  EXPECT_EQ(run({"launch", "--", "no-such-program-anywhere"}), 127);
}

TEST_F(Launcher, SaysOnceThatACommandCannotBeExecuted) {
  folder_.touch("not-a-program");
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "--", "./not-a-program"}), 126);
  EXPECT_EQ(errors(), "gradring launch: cannot run './not-a-program': Permission denied\n");
  EXPECT_EQ(run({"launch", "--", "/"}), 126);
}

TEST_F(Launcher, RunsAnyProgramWithItsArgumentsAsTheyAre) {
  EXPECT_EQ(run({"launch", "--", "/bin/sh", "-c", "echo \"$1|$2\"", "sh", "--nproc-per-node", "a b"}), 0);
  EXPECT_EQ(folder_.text("stdout"), "--nproc-per-node|a b\n");
}

TEST_F(Launcher, OpensNoTcpPort) {
  RunningLauncher launcher(folder_, {"launch", "--standalone", "train", "mark=up", "await=go"});
  launcher.await_mark("up", 0);
  EXPECT_EQ(tcp_sockets_of(launcher.pid()), 0);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
}

TEST_F(Launcher, KnowsExitCodesEvenWhereChildrenAreIgnored) {
  RunningLauncher launcher(folder_, {"launch", "train", "exit=7"}, {SIGCHLD});
  EXPECT_EQ(launcher.wait(), 7);
}

TEST_F(Launcher, ABadCommandLineStartsNothing) {
  EXPECT_EQ(run({"launch", "--nproc-per-nod", "2", "train", "mark=up"}), 2);
  EXPECT_THAT(errors(), HasSubstr("unknown option --nproc-per-nod; the nearest is --nproc-per-node"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "up.0"));
}

TEST_F(Launcher, SaysWhereItCannotMakeItsFolder) {
  RunningLauncher launcher(folder_, {"launch", "train"}, {}, {"TMPDIR=/no/such/folder"});
  EXPECT_EQ(launcher.wait(), 3);
  EXPECT_THAT(errors(), HasSubstr("/no/such/folder: No such file or directory; point TMPDIR at"));
}

TEST_F(Launcher, SpawnReturnsTheFirstFailuresCodeAndMessage) {
  EXPECT_EQ(run({"spawn", "3", "exit=0"}), 0);
  EXPECT_EQ(run({"spawn", "3", "2:report=loss is NaN", "2:exit=5", "sleep"}), 5);
  EXPECT_THAT(errors(), HasSubstr("gradring: rank 2 of 3 "));
  EXPECT_THAT(errors(), HasSubstr("loss is NaN"));
}

TEST(LaunchOptions, MustNameAProgramAndAtLeastOneWorker) {
  EXPECT_THROW(launch({}), InvalidArgument);
  EXPECT_THROW(launch({.program = "true", .nproc_per_node = 0}), InvalidArgument);
}

TEST(OwnProgram, IsThisTest) { EXPECT_THAT(own_program(), HasSubstr("test_launch")); }

}  // namespace
}  // namespace gradring::train
