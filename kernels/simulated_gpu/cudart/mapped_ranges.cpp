// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/mapped_ranges.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>

namespace gradring::simulated_gpu {

void* MappedRanges::map(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (bytes > std::numeric_limits<std::size_t>::max() - 2 * page) return nullptr;
  const std::size_t pages = (bytes + page - 1) / page * page;
  void* const data =
      ::mmap(nullptr, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  const std::lock_guard lock(mutex_);
  const bool is_guarded =
      guarded_ < kMostGuarded && ::mprotect(static_cast<std::byte*>(data) + pages, page, PROT_NONE) == 0;
  guarded_ += is_guarded ? 1 : 0;
  ranges_[reinterpret_cast<std::uintptr_t>(data)] = {.bytes = pages + page, .is_guarded = is_guarded};
  return data;
}

void MappedRanges::release(void* data) {
  const std::lock_guard lock(mutex_);
  Range& range = ranges_.at(reinterpret_cast<std::uintptr_t>(data));
  range.live = false;
  if (!range.is_guarded) {
    ::madvise(data, range.bytes, MADV_DONTNEED);
    return;
  }
  --guarded_;
  // Instead of the pages: their memory is given back, their addresses are not.
  ::mmap(data, range.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void MappedRanges::print_access_to_freed(std::uintptr_t address) const {
  if (state_of(reinterpret_cast<const void*>(address)) != State::freed) return;
  char text[160];
  const int length = std::snprintf(text, sizeof text,
                                   "simulated GPU: the host accesses 0x%jx, which cudaFreeHost or cudaFree has freed\n",
                                   std::uintmax_t{address});
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, static_cast<std::size_t>(length));
}

MappedRanges::Ranges::const_iterator MappedRanges::find(const void* address) const {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const auto next = ranges_.upper_bound(number);
  if (next == ranges_.begin()) return ranges_.end();
  const auto found = std::prev(next);
  return number - found->first < found->second.bytes ? found : ranges_.end();
}

}  // namespace gradring::simulated_gpu
