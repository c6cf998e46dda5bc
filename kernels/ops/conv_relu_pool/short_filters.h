// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/conv2d/short_filters.h"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"

/// The first convolution of a network, pooled 2 x 2: passes of the variant "mma".
namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

inline constexpr int kTileWindows = 16;  // of a warp
inline constexpr int kBlockFilters = 32;

namespace short_filters {

/// Whether the rows of images that wgrad needs at once fit shared memory.
bool rows_fit(const Geometry& g);  // 3_short_filters_wgrad.cu

/// Whether there are kernels for it, whatever the batch.
inline bool knows(const Geometry& g) {
  constexpr std::int64_t kMostWindows = std::int64_t{1} << 30, kMostRows = std::int64_t{1} << 31;
  return g.window == 2 && g.conv.stride == 1 && g.out_positions() <= kMostWindows &&
         g.conv.batch * (g.conv.in_height + 2 * g.conv.padding) < kMostRows && rows_fit(g);
}

/// Each false, having done nothing, where it does not know the geometry.
bool forward(Stream& stream, const ForwardArgs& args);  // 3_short_filters_forward.cu
bool wgrad(Stream& stream, const BackwardArgs& args);   // 3_short_filters_wgrad.cu; dw and db
std::size_t wgrad_workspace_bytes(const Geometry& g);

}  // namespace short_filters

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
