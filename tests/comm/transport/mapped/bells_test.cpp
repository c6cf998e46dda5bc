// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mapped/bells.h"

#include <gtest/gtest.h>

#include <thread>

namespace gradring::comm {
namespace {

constexpr std::chrono::seconds kLong(60);

/// The control blocks of three ranks in one process.
class BellsTest : public ::testing::Test {
 protected:
  BellsTest() {
    const std::size_t bytes = ControlBlock::bytes_for(kRanks);
    memory_.resize(kRanks * bytes / sizeof(Line));
    for (int rank = 0; rank < kRanks; ++rank) {
      auto* const place = reinterpret_cast<std::byte*>(memory_.data()) + static_cast<std::size_t>(rank) * bytes;
      blocks_.push_back(ControlBlock::create(place, kRanks));
    }
  }
  Bells bells(int rank) const { return Bells(blocks_, rank); }
  ControlBlock::Status& status(int rank) const { return blocks_[static_cast<std::size_t>(rank)].status(); }
  void until_asleep(int rank) const {
    while (status(rank).sleeping.load() == 0) std::this_thread::yield();
  }

  static constexpr int kRanks = 3;

 private:
  struct alignas(ControlBlock::kLine) Line {
    std::byte bytes[ControlBlock::kLine];
  };
  std::vector<Line> memory_;
  std::vector<ControlBlock> blocks_;
};

TEST_F(BellsTest, OnlyWhoIsWaitedForWakesTheSleeper) {
  std::atomic<bool> told{false};
  std::thread sleeper([&] {
    Bells mine = bells(0);
    while (!told) mine.sleep(2, kLong, [&] { return told.load(); });
  });
  until_asleep(0);
  const std::uint32_t bell = status(0).bell.load();
  bells(1).ring(0);
  EXPECT_EQ(status(0).bell.load(), bell) << "rank 1 rang, but rank 2 is waited for";
  told = true;
  bells(2).ring(0);
  sleeper.join();
  EXPECT_EQ(status(0).bell.load(), bell + 1);
}

TEST_F(BellsTest, EverybodyIsWokenByATrouble) {
  std::atomic<bool> told{false};
  std::thread sleeper([&] {
    Bells mine = bells(0);
    while (!told) mine.sleep(2, kLong, [&] { return told.load(); });
  });
  until_asleep(0);
  told = true;
  bells(1).ring_everybody();
  sleeper.join();
}

TEST_F(BellsTest, NobodySleepsOverWhatHasHappened) {
  bells(0).sleep(1, kLong, [] { return true; });
  EXPECT_EQ(status(0).sleeping.load(), 0u);
}

TEST_F(BellsTest, NobodyRingsForWhoIsAwake) {
  bells(1).ring(0);
  bells(1).ring_everybody();
  EXPECT_EQ(status(0).bell.load(), 0u);
}

TEST_F(BellsTest, LookingEndsWithTheAnswer) {
  EXPECT_TRUE(bells(0).look([] { return true; }, std::vector<int>{1}));
  EXPECT_FALSE(bells(0).look([] { return false; }, std::vector<int>{1}));
}

}  // namespace
}  // namespace gradring::comm
