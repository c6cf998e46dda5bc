// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/mapped/doorbell.h"

#include <gtest/gtest.h>

#include <thread>

namespace gradring::comm {
namespace {

constexpr std::chrono::hours kLong(1);  // longer than any test may take

/// The control blocks of three ranks in one process.
class DoorbellTest : public ::testing::Test {
 protected:
  DoorbellTest() {
    const std::size_t bytes = ControlBlock::bytes_for(kRanks);
    memory_.resize(kRanks * bytes / sizeof(Line));
    for (int rank = 0; rank < kRanks; ++rank) {
      auto* const place = reinterpret_cast<std::byte*>(memory_.data()) + static_cast<std::size_t>(rank) * bytes;
      blocks_.push_back(ControlBlock::create(place, kRanks));
    }
  }
  Doorbell doorbell(int rank) const { return Doorbell(blocks_, rank); }
  ControlBlock::Status& status(int rank) const { return blocks_[static_cast<std::size_t>(rank)].status(); }
  void park_until_notified(int rank, int awaited) const {
    Doorbell mine = doorbell(rank);
    const auto notified = [&] { return status(rank).doorbell.load() != 0; };
    while (!notified()) mine.park(awaited, kLong, notified);
  }
  /// Whether rank 0 polls more than once when the ranks may run on those cores.
  bool spins(const std::vector<std::uint64_t>& cores) const {
    std::vector<Doorbell> all;
    for (int rank = 0; rank < kRanks; ++rank) all.push_back(doorbell(rank));
    for (int rank = 0; rank < kRanks; ++rank) {
      for (auto& word : status(rank).cores) word = 0;
      status(rank).cores[0] = cores[static_cast<std::size_t>(rank)];
    }
    bool again = false;
    for (int turn = 0; turn < 1000 && !again; ++turn) {  // a busy machine may preempt the thread at once
      int polls = 0;
      all[0].spin([&] { return ++polls > 1; }, std::vector<int>{1});
      again = polls > 1;
    }
    return again;
  }
  void wait_until_parked(int rank) const {
    while (status(rank).parked.load() == 0) std::this_thread::yield();
  }

  static constexpr int kRanks = 3;

 private:
  struct alignas(ControlBlock::kLine) Line {
    std::byte bytes[ControlBlock::kLine];
  };
  std::vector<Line> memory_;
  std::vector<ControlBlock> blocks_;
};

TEST_F(DoorbellTest, OnlyTheAwaitedRankWakesAParkedRank) {
  std::thread waiter([&] { park_until_notified(0, 2); });
  wait_until_parked(0);
  doorbell(1).notify(0);
  EXPECT_EQ(status(0).doorbell.load(), 0u) << "rank 1 notified, but rank 2 is awaited";
  doorbell(2).notify(0);
  EXPECT_EQ(status(0).doorbell.load(), 1u);
  waiter.join();  // hangs if the notify did not wake it
}

TEST_F(DoorbellTest, NotifyAllWakesAnyParkedRank) {
  std::thread waiter([&] { park_until_notified(0, 2); });
  wait_until_parked(0);
  doorbell(1).notify_all();
  EXPECT_EQ(status(0).doorbell.load(), 1u);
  waiter.join();
}

TEST_F(DoorbellTest, ParkReturnsAtOnceIfAwake) {
  doorbell(0).park(1, kLong, [] { return true; });
  EXPECT_EQ(status(0).parked.load(), 0u);
}

TEST_F(DoorbellTest, NotifySkipsRunningRanks) {
  doorbell(1).notify(0);
  EXPECT_EQ(status(0).doorbell.load(), 0u);
}

TEST_F(DoorbellTest, NotifyAllReachesARankThatParksLater) {
  Doorbell mine = doorbell(0);
  doorbell(1).notify_all();
  EXPECT_TRUE(mine.park(2, std::chrono::seconds(60), [] { return false; }));
  EXPECT_FALSE(mine.park(2, std::chrono::milliseconds(1), [] { return false; })) << "it has heard that one";
}

TEST_F(DoorbellTest, SpinsOnlyIfRanksHaveEnoughCores) {
  EXPECT_TRUE(spins({0b001, 0b010, 0b100}));
  EXPECT_TRUE(spins({0b111, 0b001, 0b001}));
  EXPECT_FALSE(spins({0b001, 0b001, 0b010})) << "three ranks on two cores";
}

TEST_F(DoorbellTest, SpinReturnsReady) {
  EXPECT_TRUE(doorbell(0).spin([] { return true; }, std::vector<int>{1}));
  EXPECT_FALSE(doorbell(0).spin([] { return false; }, std::vector<int>{1}));
}

}  // namespace
}  // namespace gradring::comm
