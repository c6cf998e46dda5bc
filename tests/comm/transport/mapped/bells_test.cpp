// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mapped/bells.h"

#include <gtest/gtest.h>

#include <thread>

namespace gradring::comm {
namespace {

constexpr std::chrono::hours kLong(1);  // longer than any test may take

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
  void sleep_until_rung(int rank, int awaited) const {
    Bells mine = bells(rank);
    const auto rung = [&] { return status(rank).bell.load() != 0; };
    while (!rung()) mine.sleep(awaited, kLong, rung);
  }
  /// Whether rank 0 asks more than once if its answer is there, where the ranks may run on those cores.
  bool looks(const std::vector<std::uint64_t>& cores) const {
    std::vector<Bells> all;
    for (int rank = 0; rank < kRanks; ++rank) all.push_back(bells(rank));
    for (int rank = 0; rank < kRanks; ++rank) {
      for (auto& word : status(rank).cores) word = 0;
      status(rank).cores[0] = cores[static_cast<std::size_t>(rank)];
    }
    bool again = false;
    for (int turn = 0; turn < 1000 && !again; ++turn) {  // a busy machine may take the core away at once
      int asked = 0;
      all[0].look([&] { return ++asked > 1; }, std::vector<int>{1});
      again = asked > 1;
    }
    return again;
  }
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
  std::thread sleeper([&] { sleep_until_rung(0, 2); });
  until_asleep(0);
  bells(1).ring(0);
  EXPECT_EQ(status(0).bell.load(), 0u) << "rank 1 rang, but rank 2 is waited for";
  bells(2).ring(0);
  EXPECT_EQ(status(0).bell.load(), 1u);
  sleeper.join();  // never, if the bell does not wake
}

TEST_F(BellsTest, EverybodyIsWokenByATrouble) {
  std::thread sleeper([&] { sleep_until_rung(0, 2); });
  until_asleep(0);
  bells(1).ring_everybody();
  EXPECT_EQ(status(0).bell.load(), 1u);
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

TEST_F(BellsTest, RanksThatAreBoundToCoresOfTheirOwnLook) {
  EXPECT_TRUE(looks({0b001, 0b010, 0b100}));
  EXPECT_TRUE(looks({0b111, 0b001, 0b001}));
  EXPECT_FALSE(looks({0b001, 0b001, 0b010})) << "three ranks on two cores";
}

TEST_F(BellsTest, LookingEndsWithTheAnswer) {
  EXPECT_TRUE(bells(0).look([] { return true; }, std::vector<int>{1}));
  EXPECT_FALSE(bells(0).look([] { return false; }, std::vector<int>{1}));
}

}  // namespace
}  // namespace gradring::comm
