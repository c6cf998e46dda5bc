// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "kernels/lib/element.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

inline constexpr int kLanes = 8;

/// Eight floats that one thread computes with: eight registers on a GPU, a vector register on a CPU. A type of its own,
/// because a host compiler finds vectors in nested loops over small arrays only by luck.
#ifdef __CUDACC__
struct Lanes {
  float values[kLanes];

  __device__ float& operator[](int lane) { return values[lane]; }
  __device__ float operator[](int lane) const { return values[lane]; }
};

__device__ inline void add(Lanes& sums, const Lanes& x) {
  SIMT_UNROLL
  for (int l = 0; l < kLanes; ++l) sums[l] += x[l];
}

__device__ inline void add_product(Lanes& sums, const Lanes& x, const Lanes& y) {
  SIMT_UNROLL
  for (int l = 0; l < kLanes; ++l) sums[l] += x[l] * y[l];
}

__device__ inline void add_product(Lanes& sums, float factor, const Lanes& x) {
  SIMT_UNROLL
  for (int l = 0; l < kLanes; ++l) sums[l] += factor * x[l];
}
#else
using Lanes __attribute__((vector_size(kLanes * sizeof(float)))) = float;

inline void add(Lanes& sums, const Lanes& x) { sums += x; }
inline void add_product(Lanes& sums, const Lanes& x, const Lanes& y) { sums += x * y; }
inline void add_product(Lanes& sums, float factor, const Lanes& x) { sums += factor * x; }
#endif

/// Eight neighbouring elements of any alignment.
template <class T>
__device__ inline Lanes load_lanes(const T* from) {
#ifndef __CUDACC__
  if constexpr (sizeof(T) == sizeof(float)) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
  }
#endif
  return Lanes{to_f32(from[0]), to_f32(from[1]), to_f32(from[2]), to_f32(from[3]),
               to_f32(from[4]), to_f32(from[5]), to_f32(from[6]), to_f32(from[7])};
}

/// The first `count` of eight elements, and zeros in place of the rest, which are not read.
template <class T>
__device__ inline Lanes load_lanes(const T* from, int count) {
  if (count >= kLanes) return load_lanes(from);
  Lanes lanes;
  for (int l = 0; l < kLanes; ++l) lanes[l] = l < count ? to_f32(from[l]) : 0.0f;
  return lanes;
}

/// From the first to the last.
__device__ inline float sum_of(const Lanes& lanes) {
  float sum = 0;
  for (int l = 0; l < kLanes; ++l) sum += lanes[l];
  return sum;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
