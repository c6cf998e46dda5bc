// SPDX-License-Identifier: Apache-2.0
#include "train/setup/meeting_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "comm/error.h"
#include "tests/data/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kLong = 30s;
constexpr auto kShort = 30ms;

class Meeting : public ::testing::Test {
 protected:
  static WorkerEnvironment rank(int rank) { return {.rank = rank, .world_size = 3}; }
  std::unique_ptr<MeetingPlace> meet(const WorkerEnvironment& place, std::chrono::milliseconds patience) const {
    return std::make_unique<MeetingPlace>(place, Deadline::after(patience), folder_.path());
  }

  tests::TempFolder folder_;
};

TEST_F(Meeting, AllRanksComeToTheSameFolder) {
  const auto first = meet(rank(0), kLong);
  EXPECT_TRUE(fs::is_directory(first->store()));
  EXPECT_EQ(meet(rank(1), kLong)->store(), first->store());
  EXPECT_EQ(meet(rank(2), kLong)->store(), first->store());
}

TEST_F(Meeting, TheOthersWaitForRankZero) {
  std::unique_ptr<MeetingPlace> second;
  std::thread other([&] { second = meet(rank(1), kLong); });
  const auto first = meet(rank(0), kLong);
  other.join();
  EXPECT_EQ(second->store(), first->store());
}

TEST_F(Meeting, NamesRankZeroIfItDoesNotCome) {
  try {
    meet(rank(2), kShort);
    FAIL() << "it met nobody";
  } catch (const comm::Timeout& error) {
    EXPECT_EQ(error.rank(), 2);
    EXPECT_EQ(error.peer(), 0);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 2 of 3 waited in vain for rank 0"));
  }
}

TEST_F(Meeting, LeavesNothing) {
  meet(rank(0), kLong);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(Meeting, IsNotThatOfAnEarlierRun) {
  // What a killed rank 0 leaves: its folder, without the lock, and the link.
  const fs::path stale = folder_.path() / "gradring-run-killed";
  fs::create_directories(stale / "store");
  fs::path link;
  {
    const auto first = meet(rank(0), kLong);
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (entry.is_symlink()) link = entry.path();
  }
  ASSERT_FALSE(link.empty());
  fs::create_symlink(stale, link);
  EXPECT_THROW(meet(rank(1), kShort), comm::Timeout);

  const auto first = meet(rank(0), kLong);
  EXPECT_EQ(meet(rank(1), kLong)->store(), first->store());
  EXPECT_NE(first->store(), stale / "store");
}

TEST_F(Meeting, RunsWithOtherNamesDoNotMeet) {
  const auto first = meet(rank(0), kLong);
  WorkerEnvironment other = rank(1);
  other.run_id = "another";
  EXPECT_THROW(meet(other, kShort), comm::Timeout);
  other = rank(1);
  other.master_port = 1;
  EXPECT_THROW(meet(other, kShort), comm::Timeout);
  other = rank(1);
  other.restart_count = 1;
  EXPECT_THROW(meet(other, kShort), comm::Timeout);
}

}  // namespace
}  // namespace gradring::train
