// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/simt/engine/cooperation.h"
#include "kernels/simt/engine/sanitizer.h"

namespace gradring::simt {
namespace detail {

template <class Wide>
void check_aligned([[maybe_unused]] const void* address, [[maybe_unused]] Site site) {
  if constexpr (kChecked)
    if (reinterpret_cast<std::uintptr_t>(address) % alignof(Wide) != 0) fail_kernel(site, "misaligned wide access");
}

}  // namespace detail

template <class Wide, class T>
Wide load_as(const T* address, Site site = Site::current()) {
  detail::check_aligned<Wide>(address, site);
  Wide value;
  std::memcpy(&value, __builtin_assume_aligned(address, alignof(Wide)), sizeof value);
  return value;
}

template <class Wide, class T>
void store_as(T* address, const Wide& value, Site site = Site::current()) {
  detail::check_aligned<Wide>(address, site);
  std::memcpy(__builtin_assume_aligned(address, alignof(Wide)), &value, sizeof value);
}

}  // namespace gradring::simt
