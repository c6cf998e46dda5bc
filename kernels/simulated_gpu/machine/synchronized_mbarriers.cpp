// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/synchronized_mbarriers.h"

#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {

void SynchronizedMbarriers::clear() {
  mbarriers_ = {};
  orders_.clear();
}

void SynchronizedMbarriers::init(std::uint32_t address, std::uint32_t count, unsigned thread) {
  mbarriers_.init(address, count);
  clocks_.begin_access(thread / kWarpSize);
  orders_[address] = {.initialised = clocks_.stamp(thread)};
}

void SynchronizedMbarriers::invalidate(std::uint32_t address) {
  mbarriers_.invalidate(address);
  orders_.erase(address);
}

void SynchronizedMbarriers::fence(unsigned thread) {
  for (auto& [address, order] : orders_)
    if (who_of(order.initialised) == thread) order.is_fenced = true;
}

Mbarrier& SynchronizedMbarriers::known(std::uint32_t address, unsigned thread) {
  Mbarrier& mbarrier = mbarriers_.at(address);
  if (!clocks_.is_ordered(orders_[address].initialised, thread))
    throw Fault("an mbarrier is used that another thread initialised, without a barrier in between");
  return mbarrier;
}

template <class F>
auto SynchronizedMbarriers::watch_phase(std::uint32_t address, F change) {
  const Mbarrier& mbarrier = mbarriers_.at(address);
  const std::uint64_t phase = mbarrier.phase();
  const auto result = change();
  if (mbarrier.phase() != phase) {
    orders_[address].completed = orders_[address].arrived;
    progress_();
  }
  return result;
}

std::uint64_t SynchronizedMbarriers::arrive(std::uint32_t address, std::uint32_t count, unsigned thread, bool whole) {
  Mbarrier& mbarrier = known(address, thread);
  clocks_.release(thread, whole, orders_[address].arrived);
  return watch_phase(address, [&] { return mbarrier.arrive(count); });
}

void SynchronizedMbarriers::expect(std::uint32_t address, std::uint32_t bytes, unsigned thread) {
  known(address, thread).expect_tx(bytes);
}

void SynchronizedMbarriers::acquire(std::uint32_t address, unsigned warp, Mask lanes, bool all) {
  clocks_.acquire(warp, lanes, all, orders_[address].completed);
}

bool SynchronizedMbarriers::is_complete(std::uint32_t address, bool odd, unsigned thread) {
  return known(address, thread).is_complete(odd);
}

bool SynchronizedMbarriers::is_complete_since(std::uint32_t address, std::uint64_t state, unsigned thread) {
  return known(address, thread).is_complete_since(state);
}

bool SynchronizedMbarriers::is_fenced(std::uint32_t address) {
  mbarriers_.at(address);
  return orders_[address].is_fenced;
}

Stamp SynchronizedMbarriers::begin_landing(std::uint32_t address) {
  return clocks_.act(AccessClocks::kCopyEngine, orders_[address].arrived);
}

void SynchronizedMbarriers::end_landing(std::uint32_t address, std::uint32_t bytes) {
  watch_phase(address, [&] {
    mbarriers_.at(address).complete_tx(bytes);
    return 0;
  });
}

}  // namespace gradring::simulated_gpu
