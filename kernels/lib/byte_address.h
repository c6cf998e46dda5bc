// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/simt/simt.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// An address in an array, in bytes. An integer, as it may be outside of the array, which is null if it is empty: C++
/// has no pointers to there.
using ByteAddress = std::intptr_t;

template <class T>
__device__ ByteAddress bytes_of(std::int64_t elements) {
  return elements * static_cast<ByteAddress>(sizeof(T));
}
template <class T>
__device__ ByteAddress address_of(const T* data, std::int64_t element) {
  return reinterpret_cast<ByteAddress>(data) + bytes_of<T>(element);
}
template <class T = void>
__device__ const T* pointer_to(ByteAddress address) {
  return reinterpret_cast<const T*>(address);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
