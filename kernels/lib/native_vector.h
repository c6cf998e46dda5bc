// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

/// Vectors of the processor that the host compiler builds for, for the native CPU variants that stand beside kernel texts.
/// The compiler turns arithmetic, comparisons and selections (mask ? a : b) on them into single instructions.
namespace gradring::kernels::lib {

#ifdef __AVX512F__
inline constexpr int kNativeLanes = 16;
/// How many neighbouring pixels or rows a kernel may keep sums of, in two vectors each, before it runs out of registers.
inline constexpr int kNativePairs = 13;
#else
inline constexpr int kNativeLanes = 8;
inline constexpr int kNativePairs = 6;
#endif

using NativeFloats __attribute__((vector_size(kNativeLanes * sizeof(float)))) = float;
using NativeInts __attribute__((vector_size(kNativeLanes * sizeof(std::int32_t)))) = std::int32_t;
using NativeBytes __attribute__((vector_size(kNativeLanes))) = std::uint8_t;

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

inline NativeInts load_bytes(const std::uint8_t* from, int count) {
  NativeBytes bytes = {};
  if (count >= kNativeLanes)
    std::memcpy(&bytes, from, sizeof bytes);
  else
    std::memcpy(&bytes, from, static_cast<std::size_t>(count));
  return __builtin_convertvector(bytes, NativeInts);
}

/// All bits set where a lane is no number, which alone differs from itself.
inline NativeInts is_nan(NativeFloats vector) {
  return vector != vector;  // NOLINT(misc-redundant-expression)
}

/// The low byte of each lane.
inline void store_bytes(std::uint8_t* to, NativeInts vector, int count) {
  const NativeBytes bytes = __builtin_convertvector(vector, NativeBytes);
  if (count >= kNativeLanes)
    std::memcpy(to, &bytes, sizeof bytes);
  else
    std::memcpy(to, &bytes, static_cast<std::size_t>(count));
}

}  // namespace gradring::kernels::lib
