// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "kernels/lib/element.h"

/// Neighbouring channels of one position of an NHWC tensor, which one thread moves in one access of up to 16 bytes and
/// computes with in registers:
///
///   lib::with_channel_width<T>(channels, {x, y}, [&](auto width) { simt::launch_flat<kernel<T, width.value>>(...); });
///
///   float values[kWidth];                            // in the kernel
///   lib::load_channels(x + at, values);
///   lib::store_channels(y + at, values);
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// What one access moves at most: 16 bytes.
template <class T>
inline constexpr int kWidestChannels = 16 / sizeof(T);

template <class T, int kWidth>
struct alignas(kWidth * sizeof(T)) ChannelVector {
  T values[kWidth];
};

/// What moves a vector: words of up to 16 bytes. Copies of its elements would be accesses of their own, which a compiler
/// merges only by luck.
template <class T, int kWidth>
using VectorWord =
    std::conditional_t<sizeof(T) * kWidth % 16 == 0, uint4,
                       std::conditional_t<sizeof(T) * kWidth == 8, uint2,
                                          std::conditional_t<sizeof(T) * kWidth == 4, unsigned, unsigned short>>>;

/// `from` is aligned to kWidth elements.
template <int kWidth, class T>
__device__ inline void load_channels(const T* from, float (&to)[kWidth]) {
  using Word = VectorWord<T, kWidth>;
  constexpr int kElements = sizeof(Word) / sizeof(T);
  ChannelVector<T, kWidth> vector;
  SIMT_UNROLL
  for (int j = 0; j < kWidth; j += kElements) simt::store_as<Word>(vector.values + j, simt::load_as<Word>(from + j));
  SIMT_UNROLL
  for (int j = 0; j < kWidth; ++j) to[j] = to_f32(vector.values[j]);
}

/// One access to global memory. On a GPU by an intrinsic: of a plain assignment nvcc stores the members one by one where
/// it loses sight of the alignment.
template <class Word, class T>
__device__ inline void store_word(T* to, const Word& word) {
#ifdef __CUDACC__
  __stwb(reinterpret_cast<Word*>(to), word);
#else
  simt::store_as<Word>(to, word);
#endif
}

/// Rounds to T. `to` is in global memory, and aligned to kWidth elements.
template <int kWidth, class T>
__device__ inline void store_channels(T* to, const float (&from)[kWidth]) {
  using Word = VectorWord<T, kWidth>;
  constexpr int kElements = sizeof(Word) / sizeof(T);
  ChannelVector<T, kWidth> vector;
  SIMT_UNROLL
  for (int j = 0; j < kWidth; ++j) vector.values[j] = from_f32<T>(from[j]);
  SIMT_UNROLL
  for (int j = 0; j < kWidth; j += kElements) store_word<Word>(to + j, simt::load_as<Word>(vector.values + j));
}

/// Whether whole vectors of kWidth make up `elements`, and all arrays are aligned for them.
template <class T, int kWidth>
bool fit_vectors(std::int64_t elements, std::initializer_list<const void*> arrays) {
  for (const void* array : arrays)
    if (reinterpret_cast<std::uintptr_t>(array) % alignof(ChannelVector<T, kWidth>) != 0) return false;
  return elements % kWidth == 0;
}

/// Calls visit(std::integral_constant<int, width>) with the widest vector if it fits the channels of a position, else
/// with 1.
template <class T, class Visit>
void with_channel_width(std::int64_t channels, std::initializer_list<const void*> arrays, Visit visit) {
  if (fit_vectors<T, kWidestChannels<T>>(channels, arrays))
    visit(std::integral_constant<int, kWidestChannels<T>>());
  else
    visit(std::integral_constant<int, 1>());
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
