// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "kernels/simulated_gpu/memory/access_clocks.h"
#include "kernels/simulated_gpu/units/fault.h"
#include "kernels/simulated_gpu/units/mbarrier.h"

namespace gradring::simulated_gpu {

/// The mbarriers of a block, and what is ordered by them: accesses before an arrival come before those after a wait
/// for the phase that it completes.
///
/// Errors    Fault without a location in the program, from every function.
class SynchronizedMbarriers {
 public:
  /// `progress` is called when a phase completes.
  SynchronizedMbarriers(AccessClocks& clocks, std::function<void()> progress)
      : clocks_(clocks), progress_(std::move(progress)) {}

  void clear() {
    mbarriers_ = {};
    orders_.clear();
  }
  bool overlaps(std::uint64_t address, std::size_t bytes) const {
    return !mbarriers_.empty() && mbarriers_.overlaps(static_cast<std::uint32_t>(address), bytes);
  }

  void init(std::uint32_t address, std::uint32_t count, unsigned thread) {
    mbarriers_.init(address, count);
    clocks_.begin_access(thread / kWarpSize);
    orders_[address] = {.initialised = clocks_.stamp(thread)};
  }
  void invalidate(std::uint32_t address) {
    mbarriers_.invalidate(address);
    orders_.erase(address);
  }
  /// fence.mbarrier_init or fence.proxy.async: asynchronous copies see the mbarriers that the thread has initialised.
  void fence(unsigned thread) {
    for (auto& [address, order] : orders_)
      if (who_of(order.initialised) == thread) order.is_fenced = true;
  }

  /// Returns the state before. `whole`: all living threads of the warp arrive together. `drops`: arrive_drop.
  std::uint64_t arrive(std::uint32_t address, std::uint32_t count, unsigned thread, bool whole, bool drops = false) {
    Mbarrier& mbarrier = known(address, thread);
    clocks_.release(thread, whole, orders_[address].arrived);
    const std::uint64_t phase = mbarrier.phase();
    const std::uint64_t state = drops ? mbarrier.arrive_and_drop(count) : mbarrier.arrive(count);
    note_completion(address, phase);
    return state;
  }
  /// By a thread of another block of the cluster: its accesses are not compared with those of this one.
  void arrive_from_elsewhere(std::uint32_t address, std::uint32_t count, std::uint32_t bytes) {
    Mbarrier& mbarrier = mbarriers_.at(address);
    if (bytes != 0) mbarrier.expect_tx(bytes);
    const std::uint64_t phase = mbarrier.phase();
    mbarrier.arrive(count);
    note_completion(address, phase);
  }
  void expect(std::uint32_t address, std::uint32_t bytes, unsigned thread) { known(address, thread).expect_tx(bytes); }
  /// mbarrier.complete_tx, by a thread.
  void complete(std::uint32_t address, std::uint32_t bytes, unsigned thread) {
    Mbarrier& mbarrier = known(address, thread);
    const std::uint64_t phase = mbarrier.phase();
    mbarrier.complete_tx(bytes);
    note_completion(address, phase);
  }
  /// A thread will arrive when its copies have landed; `is_extra`: besides those that the phase expects.
  void arrive_later(std::uint32_t address, unsigned thread, bool is_extra) {
    Mbarrier& mbarrier = known(address, thread);
    if (is_extra) mbarrier.expect_arrival();
  }
  bool is_complete(std::uint32_t address, bool odd, unsigned thread) { return known(address, thread).is_complete(odd); }
  bool is_complete_since(std::uint32_t address, std::uint64_t state, unsigned thread) {
    return known(address, thread).is_complete_since(state);
  }
  /// These lanes of a warp found it complete: they know what came before. `all` of those that live.
  void acquire(std::uint32_t address, unsigned warp, Mask lanes, bool all) {
    clocks_.acquire(warp, lanes, all, orders_[address].completed);
  }

  /// Whether asynchronous copies see it.
  bool is_fenced(std::uint32_t address) {
    mbarriers_.at(address);
    return orders_[address].is_fenced;
  }
  /// The stamp of a copy that lands now and completes `bytes`.
  Stamp begin_landing(std::uint32_t address) {
    return clocks_.act(AccessClocks::kCopyEngine, orders_[address].arrived);
  }
  void end_landing(std::uint32_t address, std::uint32_t bytes) {
    Mbarrier& mbarrier = mbarriers_.at(address);
    const std::uint64_t phase = mbarrier.phase();
    mbarrier.complete_tx(bytes);
    note_completion(address, phase);
  }

 private:
  struct Order {
    Stamp initialised = 0;
    bool is_fenced = false;
    AccessClocks::Released arrived{};    ///< what those who have arrived did before
    AccessClocks::Released completed{};  ///< the same when the last phase completed
  };

  /// The object, which `thread` must know to be initialised.
  Mbarrier& known(std::uint32_t address, unsigned thread) {
    Mbarrier& mbarrier = mbarriers_.at(address);
    if (!clocks_.is_ordered(orders_[address].initialised, thread))
      throw Fault("an mbarrier is used that another thread initialised, without a barrier in between");
    return mbarrier;
  }
  /// The mbarrier was in `phase` before it changed: if that is complete now, those who wait for it may go on.
  void note_completion(std::uint32_t address, std::uint64_t phase) {
    if (mbarriers_.at(address).phase() == phase) return;
    orders_[address].completed = orders_[address].arrived;
    progress_();
  }

  AccessClocks& clocks_;
  std::function<void()> progress_;
  Mbarriers mbarriers_;
  std::map<std::uint32_t, Order> orders_;
};

}  // namespace gradring::simulated_gpu
