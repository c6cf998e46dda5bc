// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/mapped_ranges.h"

#include <sys/mman.h>

#include <iterator>

namespace gradring::simulated_gpu {

void* MappedRanges::map(std::size_t bytes) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  const std::lock_guard lock(mutex_);
  ranges_[reinterpret_cast<std::uintptr_t>(data)] = {.bytes = bytes};
  return data;
}

void MappedRanges::release(void* data) {
  const std::lock_guard lock(mutex_);
  Range& range = ranges_.at(reinterpret_cast<std::uintptr_t>(data));
  range.live = false;
  // In the place of the pages: their memory is given back, their addresses are not.
  ::mmap(data, range.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

MappedRanges::State MappedRanges::state_of(const void* address) const {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  auto next = ranges_.upper_bound(place);
  if (next == ranges_.begin()) return State::unknown;
  const auto& [begin, range] = *std::prev(next);
  if (place - begin >= range.bytes) return State::unknown;
  return range.live ? State::live : State::freed;
}

}  // namespace gradring::simulated_gpu
