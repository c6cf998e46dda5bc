// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "kernels/simulated_gpu/memory/memory_budget.h"

namespace gradring::simulated_gpu {

/// A vector clock over the blocks of a launch: of each block, the first of its segments that is not known. Blocks next
/// to each other mostly have the same, so it is kept as runs.
///
/// A clock of more than 8192 runs knows all of every block from then on, which is lenient.
class BlockClock {
 public:
  static BlockClock of(std::uint64_t block, std::uint32_t until) {
    BlockClock clock;
    clock.runs_.push_back({block, block + 1, until});
    return clock;
  }
  /// Knows all of every block.
  static BlockClock of_everything() {
    BlockClock clock;
    clock.knows_all_ = true;
    return clock;
  }

  bool knows(std::uint64_t block, std::uint32_t segment) const;
  /// Returns whether anything was not known before.
  bool add(const BlockClock& other);
  std::size_t bytes() const { return sizeof *this + runs_.size() * sizeof(Run); }

 private:
  struct Run {
    std::uint64_t first = 0, end = 0;  ///< blocks
    std::uint32_t until = 0;

    bool operator==(const Run&) const = default;
  };

  std::vector<Run> runs_;  ///< the lowest first
  bool knows_all_ = false;
};

/// What blocks of a launch publish by strong writes, for those who read them: by the address of the location. What
/// finds no room in `budget` counts as ordered, which is lenient.
///
/// Threads   any.
class BlockOrder {
 public:
  using Clock = std::shared_ptr<const BlockClock>;

  explicit BlockOrder(MemoryBudget& budget) : budget_(budget) {}

  /// The clock, to be shared; without room for it, one that knows all.
  Clock keep(BlockClock clock);
  /// Whether anything was published.
  bool is_used() const { return is_used_.load(std::memory_order_acquire); }
  /// By a write; null: nothing. An atomic read-modify-write keeps what was published there before, as it continues the
  /// release sequence.
  void publish(std::uint64_t address, const Clock& known, bool is_update);
  /// Null: nothing.
  Clock published(std::uint64_t address) const;

 private:
  static constexpr std::size_t kLocationBytes = 64;  ///< of an entry of locations_, about

  MemoryBudget& budget_;
  const Clock everything_ = std::make_shared<const BlockClock>(BlockClock::of_everything());
  std::atomic<bool> is_used_{false};
  bool is_full_ = false;  ///< some locations are missing: they count as published with all
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Clock> locations_;
};

}  // namespace gradring::simulated_gpu
