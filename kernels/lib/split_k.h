// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/lib/partial_sums.h"
#include "kernels/runtime/stream.h"
#include "kernels/simt/simt.h"

/// Split-K: a product whose C has few tiles leaves most of a GPU idle. So K is cut into slices: block z multiplies
/// slice z of its tile and writes the partial sums to a matrix of its own in the workspace; a second kernel adds up the
/// slices in ascending order. Without atomics, and with a number of slices that follows from the shape alone, every run
/// on every card gives the same bits.
namespace gradring::kernels::lib {

constexpr std::int64_t ceil_div(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

/// The most slices that `k_tiles` k-tiles are cut into: `wanted`, but each slice has at least `min_k_tiles`. Never less
/// for more k-tiles, so that a workspace of this size also serves smaller products.
constexpr std::int64_t max_slices(std::int64_t k_tiles, std::int64_t wanted, std::int64_t min_k_tiles) {
  return std::max<std::int64_t>(1, std::min(wanted, k_tiles / min_k_tiles));
}

/// The number of slices, of ceil_div(k_tiles, slices) k-tiles each; the last may have fewer, but not none unless K = 0.
constexpr int slices_of(std::int64_t k_tiles, std::int64_t wanted, std::int64_t min_k_tiles) {
  const std::int64_t of_slice = ceil_div(k_tiles, max_slices(k_tiles, wanted, min_k_tiles));
  return of_slice == 0 ? 1 : static_cast<int>(ceil_div(k_tiles, of_slice));
}

inline namespace GRADRING_KERNEL_COPY {

/// The part [begin, end) of K that this block sums over: slice blockIdx.z, of `k_of_slice` each but the last.
struct KOfBlock {
  int begin, end;

  __device__ KOfBlock(int k, int k_of_slice) : begin(static_cast<int>(blockIdx.z) * k_of_slice) {
    end = k - begin < k_of_slice ? k : begin + k_of_slice;
  }
  /// Where blockIdx.z is no slice.
  __device__ static KOfBlock whole(int k) { return KOfBlock(0, k, {}); }

 private:
  struct Ends {};
  __device__ KOfBlock(int first, int last, Ends) : begin(first), end(last) {}
};

/// Element i of the sum of every `step`-th of `count` slices of so many elements.
__device__ inline float sum_of_slices(const float* slices, int count, int step, std::int64_t elements, std::size_t i) {
  float sum = 0;
  for (int slice = 0; slice < count; slice += step) sum += slices[static_cast<std::size_t>(slice * elements) + i];
  return sum;
}

/// Slices of an array, one after the other, and where their sum goes.
struct Slices {
  float* slices;
  std::int64_t elements;  ///< of a slice
  float* to;
};

/// to[i] = sum over s of slices[s][i], added to it if `accumulate`, for each of two arrays with `count` slices.
/// Overwrites the slices. With `left` and without `accumulate`, leaves both sums there and enqueues nothing.
///
/// Order     enqueued on the stream, on a GPU as one launch; returns at once.
/// Numerics  deterministic: ascending order; of more than 32 slices, first the sums of 32 each, then the sum of these.
/// Example   tests/kernels/lib/lib_test.cpp
void sum_slices(Stream& stream, int count, const Slices& first, const Slices& second, bool accumulate,
                PartialSums* left = nullptr);

/// The same for one array.
inline void sum_slices(Stream& stream, float* slices, int count, std::int64_t elements, float* to, bool accumulate,
                       PartialSums* left = nullptr) {
  sum_slices(stream, count, {slices, elements, to}, {}, accumulate, left);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
