// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lib/reference.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

/// Partial sums of dw and db: `count` arrays of dw, then as many of db.
struct GradientSlices {
  float* dw;
  float* db;
  int count;

  /// Errors    InvalidArgument if there is no memory for them.
  GradientSlices(const BackwardArgs& args, std::int64_t slices)
      : dw(static_cast<float*>(args.slices())),
        db(dw + slices * args.geometry.conv.weight_elements()),
        count(static_cast<int>(slices)) {
    lib::check_pointer("conv_relu_pool backward", "workspace", dw);
  }
  static std::size_t bytes(const Geometry& g, std::int64_t slices) {
    return static_cast<std::size_t>(slices * g.conv.out_channels * (g.conv.filter_elements() + 1)) * sizeof(float);
  }

  /// Sums them up, or leaves that to args.partial_sums.
  void sum(Stream& stream, const BackwardArgs& args) const {
    const conv2d::Geometry& conv = args.geometry.conv;
    lib::sum_slices(stream, count, {dw, conv.weight_elements(), args.dw}, {db, conv.out_channels, args.db},
                    args.accumulate, args.partial_sums);
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
