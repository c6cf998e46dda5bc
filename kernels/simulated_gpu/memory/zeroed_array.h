// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace gradring::simulated_gpu {

struct FreeArray {
  void operator()(void* data) const { std::free(data); }
};
template <class T>
using ZeroedArray = std::unique_ptr<T[], FreeArray>;

/// Integers of 0, which take no memory before they are used: what is noted of each byte of a GPU's memory. Of a large
/// array, the system is asked for pages of 2 MB, as each page costs an interrupt when it is used first.
///
/// Errors    std::bad_alloc
template <class T>
ZeroedArray<T> zeroed_array(std::size_t count) {
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  ZeroedArray<T> made(static_cast<T*>(std::calloc(count, sizeof(T))));
  if (made == nullptr && count != 0) throw std::bad_alloc();
  const auto begin = (reinterpret_cast<std::uintptr_t>(made.get()) + kLargePage - 1) / kLargePage * kLargePage;
  const auto end = (reinterpret_cast<std::uintptr_t>(made.get()) + count * sizeof(T)) / kLargePage * kLargePage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  return made;
}

}  // namespace gradring::simulated_gpu
