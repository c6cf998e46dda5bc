// SPDX-License-Identifier: Apache-2.0
// Addresses in shared memory as the copy engine and the tensor cores of sm_90 count them: 18 bits. On the CPU these are
// the lowest bits of the real address, so that alignment is what the program made it.
#pragma once

#include <cstdint>

#include "kernels/simt/cpu/index.h"
#include "kernels/simt/engine/cooperation.h"
#include "kernels/simt/warpgroup_layout.h"

namespace gradring::simt::detail {

inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer)) & kSharedAddressMask;
}

/// `bytes` of the block's dynamic shared memory.
inline unsigned char* at_shared_address(std::uint32_t address, std::uint32_t bytes, Site site) {
  const std::uint32_t offset = (address - shared_address(dynamic_shared)) & kSharedAddressMask;
  if (offset + std::size_t{bytes} > dynamic_shared_bytes)
    fail_kernel(site, "an address outside of the block's dynamic shared memory");
  return dynamic_shared + offset;
}

}  // namespace gradring::simt::detail
