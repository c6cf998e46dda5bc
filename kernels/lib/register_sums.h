// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

/// Sums of kWidth neighbouring columns that one thread keeps in registers: each factor it loads then serves all of
/// them, and what it is multiplied with is contiguous. The last strip of a row may be narrower: `width` <= kWidth.
template <int kWidth>
class Strip {
 public:
  static_assert(kWidth % kLanes == 0);

  /// sums[j] += row[j]
  template <class T>
  __device__ void add(const T* row, int width) {
    SIMT_UNROLL
    for (int p = 0; p < kParts; ++p)
      if (p * kLanes < width) lib::add(parts_[p], load_lanes(row + p * kLanes, width - p * kLanes));
  }

  /// sums[j] += factor * row[j]
  template <class T>
  __device__ void add_product(float factor, const T* row, int width) {
    SIMT_UNROLL
    for (int p = 0; p < kParts; ++p)
      if (p * kLanes < width) lib::add_product(parts_[p], factor, load_lanes(row + p * kLanes, width - p * kLanes));
  }

  __device__ void copy_to(float* sums) const {
    for (int j = 0; j < kWidth; ++j) sums[j] = parts_[j / kLanes][j % kLanes];
  }

  /// Calls visit(j, sums[j]) for every j below `width`.
  template <class Visit>
  __device__ void for_each(int width, Visit visit) const {
    SIMT_UNROLL
    for (int p = 0; p < kParts; ++p)
      for (int l = 0; l < kLanes; ++l)
        if (p * kLanes + l < width) visit(p * kLanes + l, parts_[p][l]);
  }

 private:
  static constexpr int kParts = kWidth / kLanes;
  Lanes parts_[kParts] = {};
};

/// How many strips of a width cover `columns`.
constexpr int strips(std::int64_t columns, int width) { return static_cast<int>((columns + width - 1) / width); }

/// The width of strip number `strip`: `width`, but less for the last one.
__device__ inline int strip_width(std::int64_t columns, std::int64_t strip, int width) {
  const std::int64_t left = columns - strip * width;
  return left < width ? static_cast<int>(left) : width;
}

/// Dot products of one vector with kRows others, eight elements at a time in registers. Lane l of a row's sums adds up
/// the products at l, l + 8, ..., so that the additions do not wait for each other; the remainder has a sum of its own.
template <int kRows>
class Dots {
 public:
  /// Adds x . row r over `length` elements; row r starts at w + r * stride and is contiguous, as is x. Rows from `rows`
  /// on are not read (the last one is, in their place), and their sums mean nothing.
  template <class T>
  __device__ void add(const T* __restrict__ x, const T* __restrict__ w, std::int64_t stride, int rows, int length) {
    int at = 0;
    for (; at + kLanes <= length; at += kLanes) {
      const Lanes x_lanes = load_lanes(x + at);
      SIMT_UNROLL
      for (int r = 0; r < kRows; ++r)
        add_product(sums_[r], x_lanes, load_lanes(w + (r < rows ? r : rows - 1) * stride + at));
    }
    for (; at < length; ++at) {
      const float value = to_f32(x[at]);
      SIMT_UNROLL
      for (int r = 0; r < kRows; ++r) rest_[r] += value * to_f32(w[(r < rows ? r : rows - 1) * stride + at]);
    }
  }

  /// Calls visit(r, sum of row r) for every r below `rows`.
  template <class Visit>
  __device__ void for_each(int rows, Visit visit) const {
    SIMT_UNROLL
    for (int r = 0; r < kRows; ++r)
      if (r < rows) visit(r, sum_of(sums_[r]) + rest_[r]);
  }

 private:
  Lanes sums_[kRows] = {};
  float rest_[kRows] = {};
};

/// Sums of a strip of columns.
template <int kStrip>
struct StripSums {
#ifdef __CUDACC__
  float sum = 0;

  template <class T>
  __device__ void add(const T* row, int /*width*/) {
    sum += to_f32(*row);
  }
  __device__ void add(const StripSums& other) { sum += other.sum; }
  __device__ float operator[](int) const { return sum; }
#else
  static constexpr int kParts = kStrip / kLanes;
  Lanes parts[kParts] = {};

  template <class T, class Width>
  void add(const T* row, Width width) {
    for (int p = 0; p < kParts; ++p)
      if (p * kLanes < width) lib::add(parts[p], load_lanes(row + p * kLanes, width - p * kLanes));
  }
  void add(const StripSums& other) {
    for (int p = 0; p < kParts; ++p) lib::add(parts[p], other.parts[p]);
  }
  float operator[](int j) const { return parts[j / kLanes][j % kLanes]; }
#endif
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
