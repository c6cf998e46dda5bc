// SPDX-License-Identifier: Apache-2.0
// CUDA's atomic functions: relaxed, as on the GPU, so that they order no other memory.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "kernels/simt/cpu/half.h"

namespace gradring::simt::detail {

/// Replaces *address by change(*address); returns what stood there before.
template <class T, class Change>
T atomic_update(T* address, Change change) {
  std::atomic_ref<T> cell(*address);
  T before = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(before, change(before), std::memory_order_relaxed)) {
  }
  return before;
}

template <class T>
T atomic_cas(T* address, T expected, T desired) {
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, desired, std::memory_order_relaxed);
  return expected;
}

/// 16-bit floats are updated through their bits: there is no atomic_ref of a class with conversions.
template <class Format>
Float16<Format> atomic_add(Float16<Format>* address, Float16<Format> value) {
  const std::uint16_t before = atomic_update(
      &address->bits, [&](std::uint16_t bits) { return (Float16<Format>::from_bits(bits) + value).bits; });
  return Float16<Format>::from_bits(before);
}

}  // namespace gradring::simt::detail

#define SIMT_ATOMIC(name, T, after)                                                           \
  inline T name(T* address, T value) {                                                        \
    return gradring::simt::detail::atomic_update(address, [=](T before) { return (after); }); \
  }
#define SIMT_ATOMIC_ARITHMETIC(T)                            \
  SIMT_ATOMIC(atomicAdd, T, static_cast<T>(before + value))  \
  SIMT_ATOMIC(atomicMax, T, before > value ? before : value) \
  SIMT_ATOMIC(atomicMin, T, before < value ? before : value) \
  SIMT_ATOMIC(atomicExch, T, (static_cast<void>(before), value))
#define SIMT_ATOMIC_BITS(T)                                                \
  SIMT_ATOMIC(atomicOr, T, before | value)                                 \
  SIMT_ATOMIC(atomicAnd, T, before& value)                                 \
  SIMT_ATOMIC(atomicXor, T, before ^ value)                                \
  inline T atomicCAS(T* address, T expected, T desired) {                  \
    return gradring::simt::detail::atomic_cas(address, expected, desired); \
  }
SIMT_ATOMIC_ARITHMETIC(int)
SIMT_ATOMIC_ARITHMETIC(unsigned)
SIMT_ATOMIC_ARITHMETIC(unsigned long long)
SIMT_ATOMIC_BITS(int)
SIMT_ATOMIC_BITS(unsigned)
SIMT_ATOMIC_BITS(unsigned long long)
SIMT_ATOMIC(atomicAdd, float, before + value)
SIMT_ATOMIC(atomicAdd, double, before + value)
SIMT_ATOMIC(atomicExch, float, (static_cast<void>(before), value))
SIMT_ATOMIC(atomicMax, long long, before > value ? before : value)
SIMT_ATOMIC(atomicMin, long long, before < value ? before : value)
SIMT_ATOMIC(atomicSub, int, before - value)
SIMT_ATOMIC(atomicSub, unsigned, before - value)
SIMT_ATOMIC(atomicInc, unsigned, before >= value ? 0 : before + 1)
SIMT_ATOMIC(atomicDec, unsigned, before == 0 || before > value ? value : before - 1)
#undef SIMT_ATOMIC_BITS
#undef SIMT_ATOMIC_ARITHMETIC
#undef SIMT_ATOMIC

inline unsigned short atomicCAS(unsigned short* address, unsigned short expected, unsigned short desired) {
  return gradring::simt::detail::atomic_cas(address, expected, desired);
}
inline __half atomicAdd(__half* address, __half value) { return gradring::simt::detail::atomic_add(address, value); }
inline __nv_bfloat16 atomicAdd(__nv_bfloat16* address, __nv_bfloat16 value) {
  return gradring::simt::detail::atomic_add(address, value);
}
inline __half2 atomicAdd(__half2* address, __half2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
inline __nv_bfloat162 atomicAdd(__nv_bfloat162* address, __nv_bfloat162 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
