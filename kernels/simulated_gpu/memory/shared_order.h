// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "kernels/simulated_gpu/memory/access_clocks.h"

namespace gradring::simulated_gpu {

/// What the words of a block's shared memory order that its threads access strongly: a release, or a relaxed write
/// behind a fence, publishes what its thread did before; who reads that value by an acquire, or before a fence, knows
/// of it. An atomic that follows publishes it, too, and another store ends it.
///
/// Threads   one.
/// Source    PTX ISA 9.0, Memory Consistency Model: release and acquire patterns, causality order.
class SharedOrder {
 public:
  explicit SharedOrder(AccessClocks& clocks) : clocks_(clocks) {}

  /// Each thread knows what all others did.
  void clear();
  /// Nothing was published, nor fenced: accesses that release nothing order nothing.
  bool is_idle() const { return words_.empty() && !has_fenced_; }
  /// membar or fence of any scope, by these lanes of a warp; `all` of those that live.
  void fence(unsigned warp, Mask lanes, bool all);
  /// A strong store or atomic of these lanes to one word. `is_update`: it is atomic.
  void write(std::uint64_t address, unsigned warp, Mask lanes, bool all, bool releases, bool is_update);
  /// A strong load or atomic. An atomic comes after its own write: lanes of one instruction see each other's.
  void read(std::uint64_t address, unsigned warp, Mask lanes, bool all, bool acquires);

 private:
  using Lanes = std::array<Mask, AccessClocks::kMostWarps>;
  struct Word {
    AccessClocks::Released published{};
    Lanes acquired{}, observed{};  ///< by whom: a thread that polls learns once
  };
  /// By relaxed reads: known from the next fence on.
  struct Observed {
    Mask lanes = 0;
    AccessClocks::Released published;
  };

  AccessClocks& clocks_;
  bool has_fenced_ = false;
  std::map<std::uint64_t, Word> words_;
  std::array<std::vector<Observed>, AccessClocks::kMostWarps> observed_;
};

}  // namespace gradring::simulated_gpu
