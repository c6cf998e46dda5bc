// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// Before a loop whose arrays are the same or apart: no iteration reads what another one writes.
#ifdef __clang__
#define GRADRING_SAME_OR_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define GRADRING_SAME_OR_APART _Pragma("GCC ivdep")
#endif

namespace gradring::kernels::lib {

/// The compiler's own IEEE 754 binary16: it converts whole vectors in hardware, where kernels::to_float works on bits.
/// g++ knows _Float16 on aarch64 from version 13 on, and __fp16 in all versions.
#if defined(__aarch64__)
using NativeHalf = __fp16;
#else
using NativeHalf = _Float16;
#endif

/// Vectors of the processor that the host compiler builds for, used by the native CPU variants.
/// The compiler turns arithmetic, comparisons and selections (mask ? a : b) on them into single instructions.

inline namespace GRADRING_KERNEL_COPY {

/// Lanes of a vector register, and how many neighbouring pixels or rows a kernel may keep sums of, in two vectors each,
/// before it runs out of registers.
#if defined(__AVX512F__)
inline constexpr int kNativeLanes = 16;
inline constexpr int kNativePairs = 13;
#elif defined(__AVX__)
inline constexpr int kNativeLanes = 8;
inline constexpr int kNativePairs = 6;
#elif defined(__aarch64__)
inline constexpr int kNativeLanes = 4;
inline constexpr int kNativePairs = 13;
#else
inline constexpr int kNativeLanes = 4;
inline constexpr int kNativePairs = 6;
#endif

/// Whether multiply-adds are one instruction; std::fma is a call of the C library elsewhere.
#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool kFusedMultiplyAdd = true;
#else
inline constexpr bool kFusedMultiplyAdd = false;
#endif

using NativeFloats __attribute__((vector_size(kNativeLanes * sizeof(float)))) = float;
using NativeInts __attribute__((vector_size(kNativeLanes * sizeof(std::int32_t)))) = std::int32_t;
/// Two lanes of the others in one: by words, an even lane below an odd one, and by bytes.
using NativeLongs __attribute__((vector_size(kNativeLanes * sizeof(std::int32_t)))) = std::int64_t;
using NativePairs __attribute__((vector_size(kNativeLanes / 2))) = std::uint8_t;

/// Of any alignment, but fastest at multiples of a vector's size.
inline NativeFloats load(const float* from) {
  NativeFloats vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

inline void store(float* to, NativeFloats vector) { std::memcpy(to, &vector, sizeof vector); }

/// The first `count` lanes, zeros in place of the rest; reads and writes no more.
inline NativeFloats load(const float* from, int count) {
  if (count >= kNativeLanes) return load(from);
  NativeFloats vector = {};
  std::memcpy(&vector, from, static_cast<std::size_t>(count) * sizeof(float));
  return vector;
}

inline void store(float* to, NativeFloats vector, int count) {
  if (count >= kNativeLanes) return store(to, vector);
  std::memcpy(to, &vector, static_cast<std::size_t>(count) * sizeof(float));
}

/// Two lanes from each byte, the even one from its lower half: `count` of them, zeros or what shares the last byte in
/// place of the rest.
inline NativeInts load_half_bytes(const std::uint8_t* from, int count) {
  NativePairs pairs = {};
  if (count >= kNativeLanes)
    std::memcpy(&pairs, from, sizeof pairs);
  else
    std::memcpy(&pairs, from, static_cast<std::size_t>(count + 1) / 2);
  const auto wide = __builtin_convertvector(pairs, NativeLongs);
  return std::bit_cast<NativeInts>((wide | wide << 28) & 0xf'0000'000f);
}

/// All bits set where a lane is NaN, which alone differs from itself.
inline NativeInts is_nan(NativeFloats vector) {
  return vector != vector;  // NOLINT(misc-redundant-expression)
}

/// And back, of lanes in [0, 16). Where `count` is odd, `spare` shares the last byte.
inline void store_half_bytes(std::uint8_t* to, NativeInts vector, int count, std::int32_t spare) {
  if (count < kNativeLanes && count % 2 != 0) vector[count] = spare;
  const auto wide = std::bit_cast<NativeLongs>(vector);
  const NativePairs pairs = __builtin_convertvector((wide | wide >> 28) & 0xff, NativePairs);
  if (count >= kNativeLanes)
    std::memcpy(to, &pairs, sizeof pairs);
  else
    std::memcpy(to, &pairs, static_cast<std::size_t>(count + 1) / 2);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
