// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "kernels/simulated_gpu/memory/access_clocks.h"
#include "kernels/simulated_gpu/units/mbarrier.h"

namespace gradring::simulated_gpu {

/// The mbarriers of a block, and what is ordered by them: accesses before an arrival come before those after a wait
/// for the phase that it completes.
///
/// Errors    Fault without a place in the program, from every function.
class SynchronizedMbarriers {
 public:
  /// `progress` is called when a phase completes.
  SynchronizedMbarriers(AccessClocks& clocks, std::function<void()> progress)
      : clocks_(clocks), progress_(std::move(progress)) {}

  void clear();
  bool empty() const { return mbarriers_.empty(); }
  bool overlaps(std::uint64_t address, std::size_t bytes) const {
    return !mbarriers_.empty() && mbarriers_.overlaps(static_cast<std::uint32_t>(address), bytes);
  }

  void init(std::uint32_t address, std::uint32_t count, unsigned thread);
  void invalidate(std::uint32_t address);
  /// fence.mbarrier_init or fence.proxy.async: asynchronous copies see the mbarriers that the thread has initialised.
  void fence(unsigned thread);

  /// Returns the state before. `whole`: all living threads of the warp arrive together.
  std::uint64_t arrive(std::uint32_t address, std::uint32_t count, unsigned thread, bool whole);
  void expect(std::uint32_t address, std::uint32_t bytes, unsigned thread);
  bool is_complete(std::uint32_t address, bool odd, unsigned thread);
  bool is_complete_since(std::uint32_t address, std::uint64_t state, unsigned thread);
  /// These lanes of a warp found it complete: they know what came before. `all` of those that live.
  void acquire(std::uint32_t address, unsigned warp, Mask lanes, bool all);

  /// Whether asynchronous copies see it.
  bool is_fenced(std::uint32_t address);
  /// The stamp of a copy that lands now and completes `bytes`.
  Stamp begin_landing(std::uint32_t address);
  void end_landing(std::uint32_t address, std::uint32_t bytes);

 private:
  struct Order {
    Stamp initialised = 0;
    bool is_fenced = false;
    AccessClocks::Released arrived{};    ///< what those who have arrived did before
    AccessClocks::Released completed{};  ///< the same when the last phase completed
  };

  /// The object, which `thread` must know to be initialised.
  Mbarrier& known(std::uint32_t address, unsigned thread);
  template <class F>
  auto watch_phase(std::uint32_t address, F change);

  AccessClocks& clocks_;
  std::function<void()> progress_;
  Mbarriers mbarriers_;
  std::map<std::uint32_t, Order> orders_;
};

}  // namespace gradring::simulated_gpu
