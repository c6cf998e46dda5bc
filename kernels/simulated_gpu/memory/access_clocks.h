// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/simulated_gpu/machine/lanes.h"

namespace gradring::simulated_gpu {

/// Who accessed shared memory, and when: the time in the upper bits, so that a later stamp is the larger one; below
/// it a thread of the block, or several lanes of a warp.
using Stamp = std::uint32_t;

/// Who of a stamp.
struct Accessor {
  static constexpr unsigned kBits = 11;
  static constexpr unsigned kSeveralLanes = 1024;  ///< plus the warp, or what works as if it were one

  unsigned who = 0;

  bool is_thread() const { return who < kSeveralLanes; }
  unsigned warp() const { return is_thread() ? who / kWarpSize : who - kSeveralLanes; }
};

constexpr unsigned who_of(Stamp stamp) { return stamp & ((1u << Accessor::kBits) - 1); }
constexpr std::uint32_t time_of(Stamp stamp) { return stamp >> Accessor::kBits; }

/// What the warps of a block know of each other's accesses to shared memory: a vector clock for each. What works
/// asynchronously counts as further warps. Time is one counter for the block, which goes on from block to block, so
/// that nothing is cleared between them.
///
/// A clock is a warp's, and not a thread's. What single lanes release (an arrival at an mbarrier) or acquire (a wait
/// for one, bar.warp.sync of some lanes) is kept beside it, by thread.
///
/// Threads   one.
class AccessClocks {
 public:
  static constexpr unsigned kMostWarps = 32;
  static constexpr unsigned kCopyEngine = kMostWarps;
  static constexpr unsigned kTensorCores = kMostWarps + 1;                ///< plus the warpgroup
  static constexpr unsigned kBulkStores = kTensorCores + kMostWarps / 4;  ///< bulk copies to global memory
  static constexpr unsigned kRemote = kBulkStores + 1;                    ///< other blocks of the cluster: always known
  static constexpr unsigned kActors = kRemote + 1;
  using Times = std::array<std::uint32_t, kActors>;

  struct ThreadTime {
    unsigned thread = 0;
    std::uint32_t time = 0;
  };
  using ThreadTimes = std::vector<ThreadTime>;

  /// Accesses that happened before something: of each warp until a time, of some threads until a later one.
  struct Released {
    Times times{};
    ThreadTimes threads;
  };

  /// What is ordered before an access of a warp.
  struct Knowledge {
    Times others{};                               ///< accesses of each other warp until then
    std::uint32_t lanes = 0;                      ///< accesses of its own other lanes until then
    Stamp bound = 0;                              ///< at least all stamps below it
    std::uint32_t own_until = ~std::uint32_t{0};  ///< accesses of the thread itself
    ThreadTimes threads;                          ///< of these threads until a later time

    std::uint32_t until(unsigned actor, unsigned warp) const { return actor == warp ? lanes : others[actor]; }
  };

  void begin_block(unsigned warps, bool checks_races);
  bool checks_races() const { return checks_races_; }
  /// Time is nearly out of range: the stamps must be cleared, and time begins again.
  bool is_exhausted() const { return now_ > kEnd / 2; }
  void begin_again() {
    now_ = 0;
    last_access_.fill(0);
    fences_.fill(0);
    fenced_.fill(0);
    fenced_by_others_.fill(0);
  }

  /// Stamps below it are of earlier blocks.
  Stamp block_begin() const { return block_begin_; }
  /// A warp is about to access shared memory.
  void begin_access(unsigned warp) {
    if (last_access_[warp] != clock_[warp]) last_access_[warp] = clock_[warp] = advance();
  }
  Stamp stamp(unsigned thread) const { return clock_[thread / kWarpSize] << Accessor::kBits | thread; }
  /// What all lanes of a warp know.
  const Knowledge& knowledge(unsigned warp) const { return known_[warp]; }
  /// The same, if the warp's own accesses are like those of others: what lanes of it did is ordered by a barrier alone.
  Knowledge with_own(unsigned warp) const {
    Knowledge knowledge = known_[warp];
    knowledge.others[warp] = knowledge.lanes;
    return knowledge;
  }
  /// What these lanes know when they start a copy that lands later: what they do themselves meanwhile is not ordered.
  Knowledge at_start(unsigned warp, Mask lanes);
  /// Leaves what `other` knows as well.
  static void restrict(Knowledge& knowledge, const Knowledge& other);
  /// Stamps below it are ordered before what `thread` does now. Others may be, too: see is_ordered.
  Stamp ordered_before(unsigned thread) const { return known_[thread / kWarpSize].bound; }
  /// Stamps of lanes of this warp below it are ordered before what the warp does now.
  Stamp lanes_ordered_before(unsigned warp) const { return (known_[warp].lanes + 1) << Accessor::kBits; }
  bool is_ordered(Stamp stamp, unsigned thread) const;
  /// The same for what a warp did when it knew less. What `self` did is ordered: a thread of it, or nobody.
  bool is_ordered(Stamp stamp, unsigned warp, unsigned self, const Knowledge& knowledge) const;
  /// Of these actors, those with accesses that are not all known.
  std::uint64_t unknown(std::uint64_t actors, unsigned warp, const Knowledge& knowledge) const;

  /// A barrier of these warps: what each did before is ordered before what each does from now on.
  void join(std::uint32_t warps);
  /// bar.warp.sync: orders these lanes of a warp; `all` of those that live.
  void order_lanes(unsigned warp, Mask lanes, bool all);
  /// What a thread did until now, for those who acquire it: an arrival at an mbarrier. Added to `released`. `whole`:
  /// all living threads of its warp do the same.
  void release(unsigned thread, bool whole, Released& released);
  static void add(Released& to, const Released& added);
  /// membar or fence of any scope, by these lanes.
  void fence(unsigned warp, Mask lanes);
  /// As release(), of what the thread did before its last fence in this block.
  ///
  /// Returns   whether there was one.
  bool release_fenced(unsigned thread, Released& released) const;
  /// These lanes learn of it; `all` of those that live.
  void acquire(unsigned warp, Mask lanes, bool all, const Released& released);

  /// A stamp of now for kCopyEngine or tensor cores; its time is known to those who acquire `released`.
  Stamp act(unsigned engine, Released& released) {
    last_access_[engine] = released.times[engine] = advance();
    return now_ << Accessor::kBits | (Accessor::kSeveralLanes + engine);
  }

  /// Of a write by another block, which counts as ordered before whatever comes after it.
  Stamp remote_stamp() const { return now_ << Accessor::kBits | (Accessor::kSeveralLanes + kRemote); }

  /// fence.proxy.async: what these lanes wrote, and what they know of, can be accessed by asynchronous instructions.
  void fence_proxy(unsigned warp, Mask lanes);
  bool is_fenced(Stamp write) const;

 private:
  static constexpr std::uint32_t kEnd = (1u << (32 - Accessor::kBits)) - 2;

  /// What some lanes of a warp have acquired.
  struct Acquired {
    Mask lanes = 0;
    Released released;
  };

  std::uint32_t advance();
  /// Adds what the thread knows, and, until that time, what it did.
  void add_known(unsigned thread, bool whole, std::uint32_t until, Released& released) const;
  void learn(unsigned warp, const Released& released);
  void update_bound(unsigned warp);

  unsigned warps_ = 0;
  bool checks_races_ = true;
  std::uint32_t now_ = 0;
  Stamp block_begin_ = 0;
  std::array<std::uint32_t, kMostWarps> clock_{};  ///< the time of a warp's accesses
  Times last_access_{};
  std::array<Knowledge, kMostWarps> known_{};
  std::array<std::vector<Acquired>, kMostWarps> acquired_{};    ///< besides known_
  std::array<std::uint32_t, kMostWarps * kWarpSize> fences_{};  ///< of each thread: the last one
  std::array<std::uint32_t, kMostWarps * kWarpSize> fenced_{};  ///< of each thread: its own writes until then
  std::array<std::uint32_t, kMostWarps> fenced_by_others_{};    ///< of each warp: its writes until then
};

}  // namespace gradring::simulated_gpu
