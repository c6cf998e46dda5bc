// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/peak/peak.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/tensor_layout.h"

namespace gradring::kernels::peak {
inline namespace GRADRING_KERNEL_COPY {

constexpr int kResults = 4;  // of a tile, in each lane: simt::mma_place_in_c
constexpr unsigned kThreads = 256;

/// The results that one lane of the tile's warp holds while it computes.
class LaneOfTile {
 public:
  __device__ LaneOfTile(float* y, std::int64_t tile, int lane) : y_(y + tile * kRows * kColumns), lane_(lane) {}

  __device__ void load(float (&results)[kResults]) const {
    SIMT_UNROLL
    for (int i = 0; i < kResults; ++i) results[i] = y_[offset(i)];
  }
  __device__ void store(const float (&results)[kResults]) const {
    SIMT_UNROLL
    for (int i = 0; i < kResults; ++i) y_[offset(i)] = results[i];
  }

 private:
  __device__ int offset(int i) const {
    const simt::Place place = simt::mma_place_in_c(lane_, i);
    return place.row * static_cast<int>(kColumns) + place.column;
  }

  float* y_;
  int lane_;
};

/// A warp a tile.
inline simt::Config config_for(std::int64_t tiles) {
  const std::int64_t tiles_of_block = kThreads / 32;
  return {.grid = dim3(static_cast<unsigned>((tiles + tiles_of_block - 1) / tiles_of_block)), .block = dim3(kThreads)};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::peak
