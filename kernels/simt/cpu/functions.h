// SPDX-License-Identifier: Apache-2.0
// CUDA's scalar functions that <cmath> does not have, whose rounding may differ from a GPU's in the last bits, and its
// atomic functions: relaxed, as on the GPU, so that they order no other memory.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/simt/cpu/half.h"

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

/// CUDA's min and max: any two arithmetic types; of a number and a NaN they return the number.
template <class A, class B>
  requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B>
constexpr std::common_type_t<A, B> max(A left, B right) {
  using Common = std::common_type_t<A, B>;
  const auto a = static_cast<Common>(left);
  const auto b = static_cast<Common>(right);
  if constexpr (std::is_floating_point_v<Common>) return b > a || a != a ? b : a;
  return b > a ? b : a;
}
template <class A, class B>
  requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B>
constexpr std::common_type_t<A, B> min(A left, B right) {
  using Common = std::common_type_t<A, B>;
  const auto a = static_cast<Common>(left);
  const auto b = static_cast<Common>(right);
  if constexpr (std::is_floating_point_v<Common>) return b < a || a != a ? b : a;
  return b < a ? b : a;
}

// Fast approximations on a GPU. The C library declares some of these names itself, hence noexcept.
inline float __expf(float x) noexcept { return std::exp(x); }
inline float __logf(float x) noexcept { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }

// Rounded to nearest, and never contracted into a fused multiply-add on a GPU.
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }

inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }

inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
  return reversed;
}
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(std::uint64_t{x} * y >> 32); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((std::uint64_t{high} << 32 | low) << (shift & 31)) >> 32);
}

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
