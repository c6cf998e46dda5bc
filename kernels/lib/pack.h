// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/lib/element.h"

/// Loops over elements that a thread takes several at a time:
///
///   for (std::size_t pack : simt::grid_range(elements / lib::kPack)) {
///     auto x = lib::load_pack<kWide>(at + pack * lib::kPack);
///     for (int j = 0; j < lib::kPack; ++j) ... x[j] ...
///     lib::store_pack<kWide>(at + pack * lib::kPack, x);
///   }
///   for (std::size_t i : lib::rest_range(elements)) ... from[i] ...
///
/// launched with lib::grid_for_packs(stream, elements).
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

inline constexpr std::size_t kPackAlignment = 4;  // elements

/// A GPU moves four f32 in one instruction; a CPU wants a loop that is long enough for its vectors.
#ifdef __CUDACC__
inline constexpr int kPack = 4;
#else
inline constexpr int kPack = 64;
#endif

/// Neighbouring elements. On a GPU one access moves them all: 16 bytes of f32, 8 of f16 or bf16.
template <class T>
struct alignas(kPackAlignment * sizeof(T)) Pack {
  T values[kPack];

  __device__ T& operator[](int i) { return values[i]; }
  __device__ T operator[](int i) const { return values[i]; }
};

/// Whether packs may start there. True for null, which is never read.
template <class T>
bool is_pack_aligned(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignof(Pack<T>) == 0;
}

#ifdef __CUDACC__

/// In one access if kWide, which needs is_pack_aligned(from); else one by one.
template <bool kWide, class T>
__device__ inline Pack<std::remove_const_t<T>> load_pack(T* from) {
  using Elements = Pack<std::remove_const_t<T>>;
  if constexpr (kWide) {
    return simt::load_as<Elements>(from);
  } else {
    Elements pack;
    for (int j = 0; j < kPack; ++j) pack[j] = from[j];
    return pack;
  }
}

template <bool kWide, class T>
__device__ inline void store_pack(T* to, const Pack<T>& pack) {
  if constexpr (kWide) {
    simt::store_as<Pack<T>>(to, pack);
  } else {
    for (int j = 0; j < kPack; ++j) to[j] = pack[j];
  }
}

/// Stores f32 rounded to T.
template <bool kWide, class T>
__device__ inline void store_rounded(T* to, const Pack<float>& pack) {
  Pack<T> rounded;
  for (int j = 0; j < kPack; ++j) rounded[j] = from_f32<T>(pack[j]);
  store_pack<kWide>(to, rounded);
}

#else

// A CPU works in place: its compilers copy a pack slowly, in smaller pieces than they then read.

template <bool kWide, class T>
T* load_pack(T* from) {
  return from;
}

template <bool kWide, class T>
void store_pack(T* to, T* pack) {
  if (to != pack) std::copy_n(pack, kPack, to);
}

template <bool kWide, class T>
void store_rounded(T* to, const float* pack) {
  for (int j = 0; j < kPack; ++j) to[j] = from_f32<T>(pack[j]);
}

#endif

/// This thread's part of the elements after the last whole pack.
__device__ inline simt::Range<std::size_t> rest_range(std::size_t elements) {
  const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  return {elements / kPack * kPack + thread, elements, std::size_t{gridDim.x} * blockDim.x};
}

/// At least one thread, for the rest. grid_for knows a CPU's price of an element, so there it is told their number.
inline simt::Config grid_for_packs(Stream& stream, std::size_t elements) {
#ifdef __CUDACC__
  return simt::grid_for(stream, std::max<std::size_t>(elements / kPack, 1));
#else
  return simt::grid_for(stream, std::max<std::size_t>(elements, 1));
#endif
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
