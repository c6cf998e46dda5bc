// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "kernels/simulated_gpu/machine/lanes.h"

namespace gradring::simulated_gpu {

/// Who accessed shared memory, and when: the time in the upper bits, so that a later stamp is the larger one; below
/// it a thread of the block, or several of them.
using Stamp = std::uint32_t;

/// Who of a stamp.
struct Accessor {
  static constexpr unsigned kBits = 11;
  static constexpr unsigned kSeveralLanes = 1024;  ///< plus the warp, or what works as if it were one
  static constexpr unsigned kSeveralWarps = (1u << kBits) - 1;

  unsigned who = kSeveralWarps;

  bool is_thread() const { return who < kSeveralLanes; }
  /// More than 32 for several.
  unsigned warp() const { return is_thread() ? who / kWarpSize : who - kSeveralLanes; }
};

constexpr unsigned who_of(Stamp stamp) { return stamp & ((1u << Accessor::kBits) - 1); }
constexpr std::uint32_t time_of(Stamp stamp) { return stamp >> Accessor::kBits; }

/// The stamp for the reads of both: `mine` is the later one, of a single thread.
constexpr Stamp merged(Stamp other, Stamp mine) {
  const unsigned who = who_of(other);
  if (who == who_of(mine)) return mine;
  const Accessor accessor{who};
  const unsigned warp = Accessor{who_of(mine)}.warp();
  const unsigned several = accessor.warp() == warp ? Accessor::kSeveralLanes + warp : Accessor::kSeveralWarps;
  return (mine >> Accessor::kBits << Accessor::kBits) | several;
}

/// What the warps of a block know of each other's accesses to shared memory: a vector clock for each. What works
/// asynchronously counts as further warps. Time is one counter for the block, which goes on from block to block, so
/// that nothing is cleared between them.
///
/// Threads   one.
class AccessClocks {
 public:
  static constexpr unsigned kMostWarps = 32;
  static constexpr unsigned kCopyEngine = kMostWarps;
  static constexpr unsigned kTensorCores = kMostWarps + 1;  ///< plus the warpgroup
  using Times = std::array<std::uint32_t, kMostWarps + 1 + kMostWarps / 4>;

  /// What is ordered before an access of a warp.
  struct Knowledge {
    Times others{};           ///< accesses of each other warp until then
    std::uint32_t lanes = 0;  ///< accesses of its own other lanes until then
    Stamp bound = 0;          ///< at least all stamps below it
  };

  void begin_block(unsigned warps, bool checks_races);
  /// Time is nearly out of range: the stamps must be cleared, and time begins again.
  bool is_exhausted() const { return now_ > kEnd / 2; }
  void begin_again();

  /// Stamps below it are of earlier blocks.
  Stamp block_begin() const { return block_begin_; }
  /// A warp is about to access shared memory.
  void begin_access(unsigned warp) {
    if (last_access_[warp] != clock_[warp]) last_access_[warp] = clock_[warp] = advance();
  }
  Stamp stamp(unsigned thread) const { return clock_[thread / kWarpSize] << Accessor::kBits | thread; }
  const Knowledge& knowledge(unsigned warp) const { return known_[warp]; }
  /// The same, if the warp's own accesses are like those of others: what lanes of it did is ordered by a barrier alone.
  Knowledge with_own(unsigned warp) const;
  /// Leaves what `other` knows as well.
  static void restrict(Knowledge& knowledge, const Knowledge& other);
  /// Stamps below it are ordered before what `thread` does now. Others may be, too: see is_ordered.
  Stamp ordered_before(unsigned thread) const { return known_[thread / kWarpSize].bound; }
  bool is_ordered(Stamp stamp, unsigned thread) const {
    return is_ordered(stamp, thread / kWarpSize, thread, known_[thread / kWarpSize]);
  }
  /// The same for what a warp did when it knew less. What `self` did is ordered: a thread of it, or nobody.
  bool is_ordered(Stamp stamp, unsigned warp, unsigned self, const Knowledge& knowledge) const;

  /// A barrier of these warps: what each did before is ordered before what each does from now on.
  void join(std::uint32_t warps);
  /// bar.warp.sync: orders the lanes of a warp.
  void order_lanes(unsigned warp);
  /// What a warp did until now, for those who acquire it: an arrival at an mbarrier. Added to `released`.
  void release(unsigned warp, Times& released);
  void acquire(unsigned warp, const Times& released);

  /// A stamp of now for kCopyEngine or tensor cores; its time is known to those who acquire `released`.
  Stamp act(unsigned engine, Times& released);

  /// fence.proxy.async: what these lanes wrote, and what they know of, can be read by asynchronous instructions.
  void fence_proxy(unsigned warp, Mask lanes);
  bool is_fenced(Stamp write) const;

 private:
  static constexpr std::uint32_t kEnd = (1u << (32 - Accessor::kBits)) - 2;

  std::uint32_t advance();
  void update_bound(unsigned warp);

  unsigned warps_ = 0;
  bool checks_races_ = true;
  bool has_released_ = false;  ///< in this block
  std::uint32_t now_ = 0;
  Stamp block_begin_ = 0;
  std::array<std::uint32_t, kMostWarps> clock_{};  ///< the time of a warp's accesses
  Times last_access_{};
  std::array<Knowledge, kMostWarps> known_{};
  std::array<std::uint32_t, kMostWarps * kWarpSize> fenced_{};  ///< of each thread: its own writes until then
  std::array<std::uint32_t, kMostWarps> fenced_by_others_{};    ///< of each warp: its writes until then
};

}  // namespace gradring::simulated_gpu
