// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace gradring::simulated_gpu {

/// Who accessed shared memory, and when: the time in the upper bits, so that a later stamp is the larger one; below it a thread of
/// the block, or several of them.
using Stamp = std::uint32_t;

/// Who of a stamp.
struct Accessor {
  static constexpr unsigned kBits = 11;
  static constexpr unsigned kSeveralLanes = 1024;  ///< plus the warp
  static constexpr unsigned kSeveralWarps = (1u << kBits) - 1;

  unsigned who = kSeveralWarps;

  bool is_thread() const { return who < kSeveralLanes; }
  /// 32 or more for several.
  unsigned warp() const { return is_thread() ? who / 32 : who - kSeveralLanes; }
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

/// What the warps of a block know of each other's accesses to shared memory: a vector clock for each warp. Time is one counter for
/// the block, which goes on from block to block, so that nothing is cleared between them.
///
/// Threads   one.
class AccessClocks {
 public:
  static constexpr unsigned kMostWarps = 32;
  using Times = std::array<std::uint32_t, kMostWarps>;

  void begin_block(unsigned warps, bool checks_races);
  /// Time is nearly out of range: the stamps must be cleared, and time begins again.
  bool is_exhausted() const { return now_ > (1u << (32 - Accessor::kBits)) - 4096; }
  void begin_again();

  /// Stamps below it are of earlier blocks.
  Stamp block_begin() const { return block_begin_; }
  /// Stamps below it are ordered before what `thread` does now. Others may be, too: see is_ordered.
  Stamp ordered_before(unsigned thread) const { return ordered_before_[thread / 32]; }
  Stamp stamp(unsigned thread) const { return clock_[thread / 32] << Accessor::kBits | thread; }
  bool is_ordered(Stamp stamp, unsigned thread) const;

  /// A barrier of these warps: what each did before is ordered before what each does from now on.
  void join(std::uint32_t warps);
  /// bar.warp.sync: orders the lanes of a warp.
  void order_lanes(unsigned warp);
  /// What a warp did until now, for those who acquire it: an arrival at an mbarrier.
  Times release(unsigned warp);
  void acquire(unsigned warp, const Times& released);

 private:
  void update_bound(unsigned warp);

  unsigned warps_ = 0;
  bool checks_races_ = true;
  std::uint32_t now_ = 0;
  Stamp block_begin_ = 0;
  Times clock_{};          ///< the time of a warp's accesses
  Times lanes_ordered_{};  ///< accesses of a warp until then are ordered before those of its other lanes
  std::array<Times, kMostWarps>
      known_{};  ///< [warp][other]: accesses of the other until then are ordered before the warp's
  std::array<Stamp, kMostWarps> ordered_before_{};
};

}  // namespace gradring::simulated_gpu
