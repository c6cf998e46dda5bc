// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/mapped/peer_monitor.h"

#include <gtest/gtest.h>

namespace gradring::comm {
namespace {

/// The memory of rank 0. Rank 2 leaves and ends as soon as somebody asks whether it is gone.
class MemoryOfALeavingPeer final : public PeerMemory {
 public:
  static constexpr int kRanks = 3;

  MemoryOfALeavingPeer() : memory_(kRanks * ControlBlock::bytes_for(kRanks) / sizeof(Line)) {
    for (int rank = 0; rank < kRanks; ++rank) ControlBlock::create(control_block(rank), kRanks);
  }
  int rank() const override { return 0; }
  int world_size() const override { return kRanks; }
  std::byte* control_block(int rank) override {
    return memory_.data()->bytes + static_cast<std::size_t>(rank) * ControlBlock::bytes_for(kRanks);
  }
  Part create(std::size_t) override { return {}; }
  Region map(int, std::uint64_t, std::size_t) override { return nullptr; }
  bool gone(int peer) override {
    if (peer != 2) return false;
    ++asked_;
    ControlBlock::at(control_block(2)).status().state.store(GroupState::left);
    return true;
  }
  bool stopped(int) override { return false; }
  std::string describe(int) const override { return "a test"; }

  std::vector<ControlBlock> blocks() {
    std::vector<ControlBlock> blocks;
    for (int rank = 0; rank < kRanks; ++rank) blocks.push_back(ControlBlock::at(control_block(rank)));
    return blocks;
  }
  int asked() const { return asked_; }

 private:
  struct alignas(ControlBlock::kLine) Line {
    std::byte bytes[ControlBlock::kLine];
  };
  std::vector<Line> memory_;
  int asked_ = 0;
};

TEST(PeerMonitor, APeerThatLeavesWhileItIsCheckedHasNotDied) {
  MemoryOfALeavingPeer memory;
  PeerMonitor monitor(memory, memory.blocks());
  const auto ready = [&] { return memory.asked() > 1; };
  const auto awaited = [] { return std::vector<int>{1}; };
  EXPECT_NO_THROW(monitor.block_until(ready, awaited, Deadline::after(std::chrono::minutes(1)), {.operation = "test"}));
}

}  // namespace
}  // namespace gradring::comm
