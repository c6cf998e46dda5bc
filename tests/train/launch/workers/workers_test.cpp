// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "kernels/base/error.h"
#include "tests/support/temp_folder.h"
#include "tests/train/launch/process_table.h"
#include "train/launch/workers/worker_group.h"
#include "train/launch/workers/workers.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

WorkerExit coded(int rank, int code) { return {.rank = rank, .code = code}; }
WorkerExit killed(int rank, int signal) { return {.rank = rank, .signal = signal}; }
WorkerExit sent(int signal, WorkerExit exit) {
  exit.sent.set(static_cast<std::size_t>(signal));
  return exit;
}

/// The rank to blame, -1 if none.
int blamed(std::vector<WorkerExit> exits) {
  const WorkerExit* cause = root_cause(exits);
  return cause == nullptr ? -1 : cause->rank;
}

TEST(RootCause, IsEmptyOnSuccess) {
  EXPECT_EQ(blamed({}), -1);
  EXPECT_EQ(blamed({coded(0, 0), coded(1, 0)}), -1);
}

TEST(RootCause, IsTheFirstFailure) {
  EXPECT_EQ(blamed({coded(2, 0), coded(1, 7), coded(0, 5)}), 1);
  EXPECT_EQ(blamed({killed(1, SIGSEGV), coded(0, 161)}), 1);
}

TEST(RootCause, PrefersThePeerToRanksThatBlameIt) {
  EXPECT_EQ(blamed({coded(0, 161), killed(1, SIGKILL)}), 1);
  EXPECT_EQ(blamed({coded(0, 162), coded(2, 161), coded(1, 4)}), 1);
  EXPECT_EQ(blamed({coded(0, 162), coded(2, 161)}), 0);
}

TEST(RootCause, PrefersALostPeerToRanksThatWerePreemptedWithIt) {
  EXPECT_EQ(blamed({coded(0, 143), coded(1, 161)}), 1);
  EXPECT_EQ(blamed({coded(0, 143), coded(1, 161), coded(2, 7)}), 2);
  EXPECT_EQ(blamed({coded(0, 143), coded(1, 143)}), 0);
  EXPECT_EQ(blamed({coded(0, 143), coded(1, 7)}), 0) << "no rank blames a peer";
}

TEST(RootCause, PrefersAnInterruptedRankToThoseThatStoppedWithIt) {
  EXPECT_EQ(blamed({coded(0, 143), coded(1, 130)}), 1);
}

TEST(FailureLines, NameTheFirstOfManyRanks) {
  std::vector<WorkerExit> exits;
  for (int rank = 0; rank < 11; ++rank) exits.push_back(coded(rank, 7));
  exits[0].host = "host";
  EXPECT_THAT(failure_lines(exits, "program", 11),
              ElementsAre("rank 0 of 11 (on host) exited with code 7, the first to fail (ranks 1, 2, 3, 4, 5, 6, "
                          "7, 8 and 2 more failed alike)"));
}

TEST(RootCause, IgnoresRanksStoppedByTheLauncher) {
  EXPECT_EQ(blamed({coded(0, 161), sent(SIGTERM, killed(1, SIGTERM))}), 0);
  EXPECT_EQ(blamed({coded(0, 162), sent(SIGTERM, coded(1, 143))}), 0);
  EXPECT_EQ(blamed({coded(0, 162), sent(SIGTERM, sent(SIGKILL, killed(1, SIGKILL)))}), 0);
  EXPECT_EQ(blamed({sent(SIGINT, killed(0, SIGINT)), sent(SIGINT, coded(1, 130))}), -1);
}

TEST(RootCause, IncludesRanksKilledByOtherSignals) {
  EXPECT_EQ(blamed({coded(0, 161), sent(SIGTERM, killed(1, SIGKILL))}), 1);
  EXPECT_EQ(blamed({coded(0, 161), sent(SIGTERM, killed(1, SIGSEGV))}), 1);
}

TEST(WorkerExit, MapsSignalsToExitCodes) {
  EXPECT_EQ(coded(0, 7).exit_code(), 7);
  EXPECT_EQ(killed(0, SIGKILL).exit_code(), 137);
}

TEST(WorkerExit, DescribesRankPidAndEnd) {
  EXPECT_THAT(describe(killed(3, SIGKILL), 8),
              testing::MatchesRegex("rank 3 of 8 \\(on .+\\) was killed by signal 9 \\(SIGKILL\\)"));
  EXPECT_THAT(describe(coded(0, 2), 1), testing::EndsWith("exited with code 2"));
}

LaunchOptions sleepers(int count) { return {.program = "sleep", .arguments = {"300"}, .nproc_per_node = count}; }

TEST(WorkerGroup, DestructorLeavesNoWorker) {
  {
    const LaunchOptions options = sleepers(3);
    Terminals terminals;
    WorkerGroup workers(options, terminals);
    workers.start(0);
    EXPECT_TRUE(workers.running());
    EXPECT_THAT(children_of(::getpid()), ::testing::SizeIs(4));  // and the reaper
  }
  EXPECT_THAT(children_of(::getpid()), IsEmpty());
}

TEST(WorkerGroup, LeavesNoWorkerAfterAFailedStart) {
  const tests::TempFolder logs;
  LaunchOptions options = sleepers(24);
  options.logs.folder = logs.path();
  options.logs.redirects = StreamMap::from_text("3");
  Terminals terminals;
  {
    WorkerGroup workers(options, terminals);
    std::filesystem::create_directory(workers.logs().path() / "attempt_0");
    std::ofstream(workers.logs().path() / "attempt_0/20") << "in the way of the folder of a worker";
    EXPECT_THROW(workers.start(0), DeviceError);
  }
  EXPECT_THAT(children_of(::getpid()), IsEmpty());
}

}  // namespace
}  // namespace gradring::train
