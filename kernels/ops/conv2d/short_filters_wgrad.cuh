// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/tensor_core.h"
#include "kernels/ops/conv2d/short_filters.cuh"

/// The gradients of filters with few weights as a small matrix product, whose rows are the weights and one of ones, its
/// columns filters, and K the outputs.
namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// The rows of the product, of which a thread has lane / 4 and every eighth from there.
template <class Filter>
struct WeightRows {
  static constexpr int kSteps = (Filter::kWeights + 1 + 15) / 16;  // of 16 rows; one is of ones
  static constexpr int kThreadRows = 2 * kSteps;

  const char* first[kThreadRows];  // what they multiply the first window by
  unsigned moves[kThreadRows];     // 0 for a row of ones, which sees the same words through each window

  /// `ones` is a word of the staged rows.
  template <class Staged>
  __device__ WeightRows(const Staged& staged, int ones) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kThreadRows; ++i) {
      const int weight = static_cast<int>(threadIdx.x % 32 / 4) + 8 * i;
      moves[i] = weight < Filter::kWeights ? 1 : 0;
      const int word = moves[i] != 0 ? weight / Filter::kRow * staged.pitch + weight % Filter::kRow : ones;
      first[i] = reinterpret_cast<const char*>(staged.words + word);
    }
  }
  /// What row `row` multiplies a window by that is so many bytes after the first.
  __device__ const char* at(int row, unsigned window_bytes) const {
    const bool has_ones = 8 * row + 8 > Filter::kWeights;
    return first[row] + (has_ones ? window_bytes * moves[row] : window_bytes);
  }
};

/// What the warps of a block have summed, in shared memory.
template <class Filter, int kWarps, int kFilters>
struct alignas(16) SumsOfWarps {
  float products[kWarps][kFilters * Filter::kWeights];
  float unused[4];  // so that a warp stores to products and biases in different banks
  float biases[kWarps][kFilters];

  template <int kSums>
  __device__ static float sum(const float (&of_warps)[kWarps][kSums], unsigned i) {
    float total = 0;
    SIMT_UNROLL_ON_GPU
    for (int warp = 0; warp < kWarps; ++warp) total += of_warps[warp][i];
    return total;
  }

  /// Those of the first `filters` filters.
  __device__ void store(float* dw, int filters) const {
    for (unsigned i = threadIdx.x; i < static_cast<unsigned>(filters * Filter::kWeights); i += 32 * kWarps)
      dw[i] = sum(products, i);
  }
  __device__ void store_biases(float* db, int filters) const {
    if (const unsigned filter = threadIdx.x; filter < static_cast<unsigned>(filters)) db[filter] = sum(biases, filter);
  }
};

/// Sums of a thread: of all weights and kThreadFilters neighbouring filters from (lane / 4) kThreadFilters on.
template <class Filter, int kThreadFilters>
struct WeightSums {
  static constexpr int kSteps = WeightRows<Filter>::kSteps;
  float products[kSteps][kThreadFilters][4] = {};

  template <int kWarps, int kFilters>
  __device__ void store(SumsOfWarps<Filter, kWarps, kFilters>& to_all) const {
    static_assert(kFilters == 8 * kThreadFilters);
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < 4 * kSteps; i += 2) {  // a row of the product, in two columns
      const int weight = i / 4 * 16 + simt::mma_position_in_c(lane, i % 4).row;
      float* const to = weight < Filter::kWeights ? &to_all.products[warp][weight] : to_all.biases[warp];
      const int step = weight < Filter::kWeights ? Filter::kWeights : 1;
      if (weight > Filter::kWeights) continue;
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < 2 * kThreadFilters; ++j)
        to[(simt::mma_position_in_c(lane, 0).column * kThreadFilters + j) * step] =
            products[i / 4][j % kThreadFilters][i % 4 + j / kThreadFilters];
    }
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
