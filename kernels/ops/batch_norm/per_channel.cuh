// SPDX-License-Identifier: Apache-2.0
// What the variants share: the steps between the passes, which have a thread per channel, and the formulas of an
// element.
#pragma once

#include "kernels/lib/element.h"
#include "kernels/ops/batch_norm/batch_norm.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::batch_norm {
inline namespace GRADRING_KERNEL_COPY {

/// A thread per channel; in 1_channels.cu.
void merge(Stream& stream, const MergeArgs& args);
void from_running(Stream& stream, const FromRunningArgs& args);
/// A warp per channel; likewise.
void fold(Stream& stream, const FoldArgs& args);

/// y of an element of one channel, but for residual and ReLU: (x - mean) * scale + bias.
struct Forward {
  float mean, scale, bias;

  template <class T>
  __device__ static Forward of(const NormalizeArgs& args, int c) {
    const float weight = args.weight ? lib::to_f32(static_cast<const T*>(args.weight)[c]) : 1.0f;
    const float bias = args.bias ? lib::to_f32(static_cast<const T*>(args.bias)[c]) : 0.0f;
    return {args.saved[c], args.saved[args.channels + c] * weight, bias};
  }
  __device__ float operator()(float x) const { return (x - mean) * scale + bias; }
};

__device__ inline float relu_of(float value) { return value < 0.0f ? 0.0f : value; }  // not max(): NaN must stay

/// dx of an element of one channel: scale * (dy' - offset - (x - mean) * slope).
struct Backward {
  float mean, scale, offset, slope;

  template <class T>
  __device__ static Backward of(const BackwardArgs& args, int c) {
    const float weight = args.weight ? lib::to_f32(static_cast<const T*>(args.weight)[c]) : 1.0f;
    const float invstd = args.saved[args.channels + c];
    const float share = 1.0f / args.saved[2 * args.channels];  // 0 for an infinite count
    float sum_dy = 0, sum_dy_xhat = 0;
    for (std::int64_t replica = 0; replica < args.replicas; ++replica) {
      const float* row = args.sums + static_cast<std::size_t>(replica) * sums_elements(args.channels);
      sum_dy += row[c];
      sum_dy_xhat += row[args.channels + c];
    }
    return {args.saved[c], invstd * weight, sum_dy * share, invstd * (sum_dy_xhat * share)};
  }
  __device__ float operator()(float x, float dy) const { return scale * (dy - offset - (x - mean) * slope); }
};

/// The end of the backward sums of channel c: `sum_dy_deviation` is the sum of dy' * (x - mean).
__device__ inline void write_sums(const BackwardSumsArgs& args, int c, float sum_dy, float sum_dy_deviation) {
  const float sum_dy_xhat = sum_dy_deviation * args.saved[args.channels + c];
  args.sums[c] = sum_dy;
  args.sums[args.channels + c] = sum_dy_xhat;
  if (args.dbias) args.dbias[c] = args.accumulate ? args.dbias[c] + sum_dy : sum_dy;
  if (args.dweight) args.dweight[c] = args.accumulate ? args.dweight[c] + sum_dy_xhat : sum_dy_xhat;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::batch_norm
