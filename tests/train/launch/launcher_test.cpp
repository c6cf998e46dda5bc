// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "kernels/base/error.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_folder.h"
#include "tests/train/launch/launcher_fixture.h"
#include "train/launch/launcher.h"
#include "train/launch/workers/reaper.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Restarts = LauncherFixture;
using Words = std::vector<std::string>;

class Launcher : public LauncherFixture {
 protected:
  std::ptrdiff_t error_lines() const { return std::ranges::count(errors(), '\n'); }
};

TEST_F(Launcher, ReturnsZeroSilentlyOnSuccess) {
  EXPECT_EQ(run({"launch", "--nproc-per-node", "3", "train", "exit=0"}), 0);
  EXPECT_EQ(errors(), "");
}

TEST_F(Launcher, WarnsOfAWildcardMasterAddress) {
  for (const char* address : {"0.0.0.0", "::", "[::]"}) {
    EXPECT_EQ(run({"launch", std::string("--master-addr=") + address, "train", "exit=0"}), 0);
    EXPECT_THAT(errors(), HasSubstr("is every interface of this host"));
    EXPECT_EQ(error_lines(), 1) << errors();
    std::filesystem::remove(folder_.path() / "stderr");
  }
}

TEST_F(Launcher, TwoRunsAtATimeHaveAPortEach) {
  const std::vector<std::string> words = {"launch", "--nproc-per-node=2", "train", "0:listen=", "mark=up", "await=go"};
  RunningLauncher first(folder_, words);
  first.await_mark("up", 0);
  const TestFolder other;
  RunningLauncher second(other, words);
  second.await_mark("up", 0);
  folder_.touch("go");
  other.touch("go");
  EXPECT_EQ(first.wait(), 0) << errors();
  EXPECT_EQ(second.wait(), 0) << second.errors();
}

/// The launcher needs several descriptors for each worker; a worker may use select().
TEST_F(Launcher, RaisesItsOwnLimitOfOpenFilesOnly) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max <= 200) GTEST_SKIP() << "the hard limit is " << before.rlim_max;
  const rlimit few{.rlim_cur = 200, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  RunningLauncher launcher(folder_, {"launch", "--", "sh", "-c", "ulimit -n; until [ -e go ]; do sleep 0.01; done"});
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(eventually([&] { return folder_.text("stdout") == "200\n"; })) << folder_.text("stdout");
  rlimit raised{};
  EXPECT_EQ(::prlimit(launcher.pid(), RLIMIT_NOFILE, nullptr, &raised), 0);
  EXPECT_EQ(raised.rlim_cur, before.rlim_max);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
}

TEST_F(Launcher, HidesTheAgentsTokenFromWorkers) {
  EXPECT_EQ(run({"launch", "train", "dump=env"}, {"GRADRING_TOKEN=secret", "GRADRING_TOKEN_FILE=/nowhere"}), 0);
  EXPECT_THAT(folder_.text("env.0"), AllOf(HasSubstr("WORLD_SIZE=1\n"), Not(HasSubstr("GRADRING_TOKEN"))));
}

TEST_F(Launcher, ReturnsTheWorkersExitCode) {
  for (const int code : {1, 2, 7, 126, 127, 161, 255})
    EXPECT_EQ(run({"launch", "train", "exit=" + std::to_string(code)}), code);
}

TEST_F(Launcher, MapsSignalsToExitCodes) {
  for (const int number : {SIGKILL, SIGSEGV, SIGABRT, SIGTERM})
    EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "train", "1:raise=" + std::to_string(number), "sleep"}),
              128 + number);
  EXPECT_THAT(errors(), HasSubstr("rank 1 of 2 "));
  EXPECT_THAT(errors(), HasSubstr("was killed by signal 9 (SIGKILL), the first to fail"));
}

TEST_F(Launcher, ForwardsFirstFailingExitCode) {
  const int code = run({"launch", "--nproc-per-node", "4", "train", "exit-on=15", "mark=up", "2:await=up.0",
                        "2:await=up.1", "2:await=up.3", "2:exit=7", "sleep"});
  EXPECT_EQ(code, 7);  // not 33, which the others return after SIGTERM
  EXPECT_EQ(error_lines(), 1) << errors();
  EXPECT_THAT(errors(), HasSubstr("rank 2 of 4 "));
  EXPECT_THAT(errors(), HasSubstr("exited with code 7, the first to fail"));
}

TEST_F(Launcher, WaitsForTheBlamedPeer) {
  EXPECT_EQ(
      run({"launch", "--nproc-per-node", "2", "train", "1:exit=161", "pause=100", "report=the disk is full", "exit=3"}),
      3);
  EXPECT_THAT(errors(), HasSubstr("exited with code 3, the first to fail: the disk is full"));
}

TEST_F(Launcher, StopsTheOthersIfOnlyABlamingRankFails) {
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "train", "1:exit=161", "sleep"}), 161);
  EXPECT_EQ(error_lines(), 1) << errors();
}

TEST_F(Launcher, ContinuesAfterAWorkerSucceeds) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "1:exit=0", "mark=up", "await=go"});
  const pid_t worker = launcher.await_mark("up", 0);
  // The launcher still has rank 0 and the reaper, but no zombie of rank 1.
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

TEST_F(Launcher, StopsASuspendedWorker) {
  RunningLauncher launcher(folder_,
                           {"launch", "--nproc-per-node", "2", "train", "mark=up", "1:await=go", "1:exit=5", "sleep"});
  signal_process(launcher.await_mark("up", 0), SIGSTOP);
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 5);
}

TEST_F(Launcher, KillsTheProcessGroupOfAnEndedWorker) {
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "train", "child=child", "await=child.0", "1:exit=4", "sleep"}), 4);
}

TEST_F(Launcher, KillsSessionsOfWorkersWhenOneFails) {
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "train", "session=child", "await=child.0", "1:exit=4", "sleep"}),
            4);
}

TEST_F(Launcher, KillsSessionsOfWorkersWhenItIsKilled) {
  RunningLauncher launcher(folder_, {"launch", "--nproc-per-node", "2", "train", "session=child", "sleep"});
  for (const int rank : {0, 1}) launcher.await_mark("child", rank);
  launcher.send(SIGKILL);
  EXPECT_EQ(launcher.wait(), -SIGKILL);
}

/// An orphan whose environment names neither the run nor the test.
TEST_F(Launcher, KillsOrphansWithoutTheirEnvironment) {
  EXPECT_EQ(run({"launch", "--", "/bin/sh", "-c",
                 "setsid env -i sh -c 'echo $$ >orphan; sleep 300' & while ! [ -s orphan ]; do :; done; exit 4"}),
            4);
  const pid_t orphan = std::stoi(folder_.text("orphan"));
  EXPECT_TRUE(eventually([&] { return process_state(orphan).empty(); }));
}

/// As where no control group can be made: an orphan with the run's variable, and a child of it without.
TEST(RunProcesses, AreFoundByTheirEnvironmentAndTheirParents) {
  const tests::TempFolder folder("/tmp");
  tests::run_program({.command = {"/bin/sh", "-c",
                                  fmt::format(R"(GRADRING_STORE={}/store setsid sh -c '
                                    env -i sh -c "echo \$\$ >child; sleep 300" & echo $$ >orphan; wait
                                  ' >out 2>&1 </dev/null &)",
                                              folder.path().string())},
                      .folder = folder.path()});
  pid_t orphan = 0, child = 0;
  ASSERT_TRUE(eventually([&] {
    return std::ifstream(folder.path() / "orphan") >> orphan && std::ifstream(folder.path() / "child") >> child;
  }));
  kill_run_processes(folder.path() / "another", std::chrono::seconds(1), 0);
  for (const pid_t pid : {orphan, child}) EXPECT_THAT(process_state(pid), Not(::testing::AnyOf("", "Z")));
  kill_run_processes(folder.path(), std::chrono::seconds(20), 0);
  for (const pid_t pid : {orphan, child}) EXPECT_THAT(process_state(pid), ::testing::AnyOf("", "Z"));
}

TEST_F(Launcher, PrintsTheWorkersErrorMessageOnceAndLast) {
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "train", "1:report=no such file: labels.gz", "1:exit=4", "sleep"}),
            4);
  EXPECT_EQ(error_lines(), 1) << errors();
  EXPECT_THAT(errors(), ::testing::EndsWith("exited with code 4, the first to fail: no such file: labels.gz\n"));
}

TEST_F(Launcher, ReportsOnceAMissingProgram) {
  EXPECT_EQ(run({"launch", "--nproc-per-node", "4", "--", "/no/such/program"}), 127);
  EXPECT_EQ(errors(), "gradring launch: cannot run '/no/such/program': No such file or directory\n");
}

TEST_F(Launcher, FindsProgramsInPath) {
  EXPECT_EQ(run({"launch", "--", "true"}), 0);
  EXPECT_EQ(run({"launch", "--", "no-such-program-anywhere"}), 127);
}

TEST_F(Launcher, ReportsOnceAProgramThatCannotBeExecuted) {
  folder_.touch("not-a-program");
  EXPECT_EQ(run({"launch", "--nproc-per-node", "2", "--", "./not-a-program"}), 126);
  EXPECT_EQ(errors(), "gradring launch: cannot run './not-a-program': Permission denied\n");
  EXPECT_EQ(run({"launch", "--", "/"}), 126);
}

TEST_F(Launcher, PassesArgumentsUnchanged) {
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

TEST_F(Launcher, ReportsExitCodesIfSigchldIsIgnored) {
  RunningLauncher launcher(folder_, {"launch", "train", "exit=7"}, {SIGCHLD});
  EXPECT_EQ(launcher.wait(), 7);
}

TEST_F(Launcher, StartsNothingOnAnInvalidCommandLine) {
  EXPECT_EQ(run({"launch", "--nproc-per-nod", "2", "train", "mark=up"}), 2);
  EXPECT_THAT(errors(), HasSubstr("unknown option --nproc-per-nod. Did you mean '--nproc-per-node'?"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "up.0"));
}

TEST_F(Launcher, ReportsWhereItCannotCreateTheRunFolder) {
  RunningLauncher launcher(folder_, {"launch", "train"}, {}, {"TMPDIR=/no/such/folder"});
  EXPECT_EQ(launcher.wait(), 3);
  EXPECT_THAT(errors(), HasSubstr("/no/such/folder: No such file or directory; set TMPDIR to"));
}

TEST_F(Launcher, SpawnReturnsTheFirstFailure) {
  EXPECT_EQ(run({"spawn", "3", "exit=0"}), 0);
  EXPECT_EQ(run({"spawn", "3", "2:report=loss is NaN", "2:exit=5", "sleep"}), 5);
  EXPECT_THAT(errors(), HasSubstr("gradring: rank 2 of 3 "));
  EXPECT_THAT(errors(), HasSubstr("loss is NaN"));
}

TEST(LaunchOptions, RequireAProgramAndAWorker) {
  EXPECT_THROW(launch({}), InvalidArgument);
  EXPECT_THROW(launch({.program = "true", .nproc_per_node = 0}), InvalidArgument);
}

TEST(OwnProgram, IsTheRunningBinary) { EXPECT_THAT(own_program(), HasSubstr("test_launch")); }

TEST_F(Restarts, RestartAllWithTheNextCount) {
  EXPECT_EQ(run({"launch", "--max-restarts=2", "--backoff=0", "--nproc-per-node=2", "train", "@0:1:exit=7",
                 "@1:0:exit=8", "@0:sleep", "@1:sleep", "dump=env"}),
            0);
  EXPECT_THAT(folder_.text("env.0"), HasSubstr("TORCHELASTIC_RESTART_COUNT=2\n"));
  EXPECT_THAT(folder_.text("env.1"), HasSubstr("TORCHELASTIC_MAX_RESTARTS=2\n"));
  EXPECT_THAT(errors(), HasSubstr("rank 1 of 2 "));
  EXPECT_THAT(errors(), HasSubstr("restart 1 of 2"));
  EXPECT_THAT(errors(), HasSubstr("restart 2 of 2"));
}

TEST_F(Restarts, ReturnTheCodeOfTheLastAttempt) {
  EXPECT_EQ(run({"launch", "--max-restarts=1", "--backoff=0", "--nproc-per-node=3", "train", "@0:1:exit=7",
                 "@1:2:raise=9", "sleep"}),
            128 + 9);
  EXPECT_THAT(errors(), HasSubstr("not restarting: all 1 restarts are used up"));
}

TEST_F(Restarts, DropMessagesOfThePreviousAttempt) {
  EXPECT_EQ(run({"launch", "--max-restarts=1", "--backoff=0", "train", "@0:report=first", "exit=7"}), 7);
  EXPECT_EQ(std::ranges::count(errors(), '\n'), 4) << errors();
  EXPECT_THAT(errors().substr(errors().find("restart 1")), Not(HasSubstr("first to")));
  EXPECT_THAT(errors().substr(errors().find("restart 1")), Not(HasSubstr(": first")));
}

TEST_F(Restarts, EndCrashLoopsEarly) {
  EXPECT_EQ(run({"launch", "--max-restarts=50", "--backoff=0", "train", "progress=5", "exit=7"}), 7);
  EXPECT_THAT(errors(), HasSubstr("3 consecutive attempts advanced by fewer than 1 steps (--min-progress-steps)"));
  EXPECT_THAT(errors(), HasSubstr("restart 3 of 50"));
  EXPECT_THAT(errors(), Not(HasSubstr("restart 4 of 50")));
}

TEST_F(Restarts, EndCrashLoopsBeforeTheFirstCheckpointEarly) {
  EXPECT_EQ(run({"launch", "--max-restarts=50", "--backoff=0", "train", "exit=7"}), 7);
  EXPECT_THAT(errors(), HasSubstr("3 consecutive attempts advanced by fewer than 1 steps (--min-progress-steps)"));
  EXPECT_THAT(errors(), HasSubstr("restart 2 of 50"));
  EXPECT_THAT(errors(), Not(HasSubstr("restart 3 of 50")));
}

TEST_F(Restarts, ContinueWhileThereIsProgress) {
  EXPECT_EQ(run({"launch", "--max-restarts=5", "--backoff=0", "--min-progress-steps=2", "train", "@0:progress=2",
                 "@1:progress=4", "@2:progress=6", "@3:progress=8", "@4:progress=10", "@5:exit=0", "exit=7"}),
            0);
}

TEST_F(Restarts, SkipUsageErrorsOfOurOwnProgram) {
  EXPECT_EQ(run({"launch", "--max-restarts=5", "train", "exit=2"}), 2);
  EXPECT_THAT(errors(), HasSubstr("not restarting: exit code 2 would recur"));
  EXPECT_EQ(run({"launch", "--max-restarts=1", "--backoff=0", "--", "/bin/sh", "-c", "exit 2"}), 2);
  EXPECT_THAT(errors(), HasSubstr("restart 1 of 1"));
}

TEST_F(Restarts, EndOnASignalDuringTheBackoff) {
  RunningLauncher launcher(folder_, {"launch", "--max-restarts=5", "--backoff=5m", "train", "exit=7"});
  ASSERT_TRUE(eventually([&] { return errors().find("restarting all workers in 300 s") != std::string::npos; }));
  launcher.send(SIGTERM);
  EXPECT_EQ(launcher.wait(), 143);
}

TEST_F(Restarts, LeaveNothingWhenTheLauncherIsKilledLater) {
  RunningLauncher launcher(folder_, {"launch", "--max-restarts=1", "--backoff=0", "--nproc-per-node=2", "train",
                                     "@0:0:exit=7", "child=child", "mark=up", "sleep"});
  launcher.await_mark("up", 0);
  launcher.await_mark("up", 1);
  ASSERT_TRUE(eventually([&] { return errors().find("restart 1 of 1") != std::string::npos; }));
  launcher.await_mark("up", 0);
  launcher.send(SIGKILL);
  EXPECT_EQ(launcher.wait(), -SIGKILL);
}

}  // namespace
}  // namespace gradring::train
