// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/rendezvous.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <optional>
#include <thread>

#include "comm/transport/error.h"
#include "kernels/base/error.h"
#include "tests/data/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kLong = 30s;
constexpr auto kShort = 30ms;

class RendezvousTest : public ::testing::Test {
 protected:
  static WorkerEnvironment rank(int rank) { return {.rank = rank, .world_size = 3}; }
  std::unique_ptr<RankRendezvous> join(const WorkerEnvironment& place, std::chrono::milliseconds patience,
                                       const RunKey& run = {}) const {
    return std::make_unique<RankRendezvous>(place, Deadline::after(patience), run, PrivateFolder(folder_.path()),
                                            folder_.path());
  }

  tests::TempFolder folder_;
};

TEST_F(RendezvousTest, GivesAllRanksTheSameFolder) {
  const auto first = join(rank(0), kLong);
  EXPECT_TRUE(fs::is_directory(first->store()));
  EXPECT_EQ(join(rank(1), kLong)->store(), first->store());
  EXPECT_EQ(join(rank(2), kLong)->store(), first->store());
}

TEST_F(RendezvousTest, OtherRanksWaitForRankZero) {
  std::unique_ptr<RankRendezvous> second;
  std::thread other([&] { second = join(rank(1), kLong); });
  const auto first = join(rank(0), kLong);
  other.join();
  EXPECT_EQ(second->store(), first->store());
}

TEST_F(RendezvousTest, TimeoutNamesRankZero) {
  try {
    join(rank(2), kShort);
    FAIL() << "expected a timeout";
  } catch (const comm::Timeout& error) {
    EXPECT_EQ(error.rank(), 2);
    EXPECT_EQ(error.peer(), 0);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 2 of 3 waited for rank 0, which did not connect"));
  }
}

TEST_F(RendezvousTest, TimeoutNamesTheVariablesThatMakeALoneProcessARank) {
  for (const int number : {0, 1}) {
    WorkerEnvironment place{.rank = number, .world_size = 2, .local_rank = number, .local_world_size = 2};
    place.run_id = folder_.path();  // of no other run
    place.launcher = "srun";
    place.rank_variables = {"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"};
    const auto message = tests::message_of<comm::Timeout>([&] { make_group(place, {.timeout = kShort}); });
    EXPECT_THAT(message, ::testing::HasSubstr(fmt::format("the environment makes this process rank {} of 2, as started "
                                                          "by srun: to run it alone, unset SLURM_STEP_ID SLURM_PROCID "
                                                          "SLURM_STEP_NUM_TASKS",
                                                          number)));
  }
}

TEST_F(RendezvousTest, RemovesItsFiles) {
  join(rank(0), kLong);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(RendezvousTest, IgnoresFilesOfAKilledRun) {
  // What a killed rank 0 leaves: its folder, without the lock, and the link.
  const fs::path stale = folder_.path() / "gradring-run-killed";
  fs::create_directories(stale / "store");
  fs::path link;
  {
    const auto first = join(rank(0), kLong);
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (entry.is_symlink()) link = entry.path();
  }
  ASSERT_FALSE(link.empty());
  fs::create_symlink(stale, link);
  EXPECT_THROW(join(rank(1), kShort), comm::Timeout);

  const auto first = join(rank(0), kLong);
  EXPECT_EQ(join(rank(1), kLong)->store(), first->store());
  EXPECT_NE(first->store(), stale / "store");
}

TEST_F(RendezvousTest, RejectsFoldersThatOthersCanWriteTo) {
  const tests::TempFolder temporary;
  const PrivateFolder links("", temporary.path());
  fs::create_directory(links.path());  // as another user would, in a shared /tmp
  fs::permissions(links.path(), fs::perms::all);
  for (const int number : {0, 1})
    EXPECT_THROW(RankRendezvous(rank(number), Deadline::after(kLong), {}, links, folder_.path()), DeviceError);
  EXPECT_TRUE(fs::is_empty(links.path()));
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(RendezvousTest, RejectsTheNameOfARunningRun) {
  const auto first = join(rank(0), kLong);
  EXPECT_THROW(join(rank(0), kLong), DeviceError);
  EXPECT_EQ(join(rank(1), kLong)->store(), first->store());
}

TEST_F(RendezvousTest, SeparatesRunsByIdPortAndAttempt) {
  const auto first = join(rank(0), kLong);
  WorkerEnvironment other = rank(1);
  other.run_id = "another";
  EXPECT_THROW(join(other, kShort), comm::Timeout);
  other = rank(1);
  other.master_port = 1;
  EXPECT_THROW(join(other, kShort), comm::Timeout);
  other.master_port = rank(1).master_port;
  other.rendezvous_port = 1;
  EXPECT_THROW(join(other, kShort), comm::Timeout);
  other = rank(1);
  other.restart_count = 1;
  EXPECT_THROW(join(other, kShort), comm::Timeout);
}

TEST_F(RendezvousTest, SeparatesRunsByTokenAndRunDirectory) {
  const RunKey mine{.token = "a", .run_dir = "/runs/a"};
  const auto first = join(rank(0), kLong, mine);
  for (const RunKey& other : {RunKey{.token = "b", .run_dir = "/runs/a"}, RunKey{.token = "a", .run_dir = "/runs/b"}})
    EXPECT_THAT(tests::message_of<EnvironmentError>([&] { join(rank(1), kShort, other); }),
                ::testing::AllOf(::testing::HasSubstr(fmt::format("process {}, run directory /runs/a", ::getpid())),
                                 ::testing::HasSubstr("run directory " + other.run_dir),
                                 ::testing::HasSubstr("GRADRING_RENDEZVOUS_PORT")));
  const auto second = join(rank(0), kLong, {.token = "b"});
  EXPECT_NE(second->store(), first->store());
  EXPECT_EQ(join(rank(1), kLong, mine)->store(), first->store());
  EXPECT_EQ(join(rank(1), kLong, {.token = "b"})->store(), second->store());
}

TEST_F(RendezvousTest, RejectsASecondProcessOfOneRank) {
  const auto first = join(rank(0), kLong), second = join(rank(1), kLong);
  EXPECT_THAT(
      tests::message_of<EnvironmentError>([&] { join(rank(1), kLong); }),
      ::testing::HasSubstr(fmt::format("another process has joined the run of rank 0 (process {}", ::getpid())));
}

TEST_F(RendezvousTest, WaitsEndWithRankZero) {
  auto first = join(rank(0), kLong);
  const auto store = join(rank(1), kLong)->open_store(kLong);
  first->open_store(kLong)->set("key", "value");
  EXPECT_EQ(store->wait("key", Deadline::after(kLong)), "value");
  first.reset();
  EXPECT_THROW(store->wait("another", Deadline::after(kLong)), comm::PeerLost);
}

}  // namespace
}  // namespace gradring::train
