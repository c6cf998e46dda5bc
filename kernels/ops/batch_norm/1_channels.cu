// SPDX-License-Identifier: Apache-2.0
// Idea: the formulas as they are written: the mean, then the squared deviations from it; two sums over the rows
//   backward; and two loops over the elements.
// Mapping: sums: a block per channel, its threads on the rows. normalize, backward: a warp walks along a row; fold: along
//   the weights of a channel.
// Traffic and bound: statistics reads x twice; backward_sums reads x, y and dy once; each 4-byte element is alone in the
//   sector of 32 bytes that a lane touches. normalize and backward read and write each element once; bound by memory.
// Still slow because: neighbouring threads of a sum read elements that are a row apart; a layer with 64 channels has 64
//   blocks; normalize and backward load and combine the channel's numbers again for each element.
// Limits: 2^32 - 1 rows, 2^31 - 1 channels.

#include <limits>
#include <type_traits>

#include "kernels/lib/rows.h"
#include "kernels/ops/batch_norm/per_channel.cuh"

namespace gradring::kernels::batch_norm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kThreads = 256;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
__global__ void batch_norm_statistics_channels_kernel(const T* __restrict__ x, unsigned rows, int channels,
                                                      float* __restrict__ statistics) {
  using One = float[1];
  SIMT_SHARED(One, mean);
  const int c = static_cast<int>(blockIdx.x);
  const auto count = static_cast<float>(rows);
  One sum = {0};
  for (unsigned row : simt::block_range(0, rows)) sum[0] += lib::to_f32(x[std::int64_t{row} * channels + c]);
  lib::block_sum<kThreads>(sum, [&](int, float total) { mean[0] = rows ? total / count : 0.0f; });
  __syncthreads();  // every thread reads the mean
  One m2 = {0};
  for (unsigned row : simt::block_range(0, rows)) {
    const float deviation = lib::to_f32(x[std::int64_t{row} * channels + c]) - mean[0];
    m2[0] += deviation * deviation;
  }
  lib::block_sum<kThreads>(m2, [&](int, float total) {
    statistics[c] = mean[0];
    statistics[channels + c] = total;
    if (c == 0) statistics[2 * std::int64_t{channels}] = count;
  });
}

__device__ inline float invstd_of(float variance, float eps) { return 1.0f / sqrtf(variance + eps); }

__global__ void batch_norm_merge_channels_kernel(MergeArgs args) {
  const auto channels = static_cast<std::size_t>(args.channels);
  for (std::size_t c : simt::grid_range(channels)) {
    float count = 0, mean = 0, m2 = 0;
    for (std::int64_t replica = 0; replica < args.replicas; ++replica) {
      const float* row = args.statistics + static_cast<std::size_t>(replica) * statistics_elements(args.channels);
      const float more = row[2 * channels];
      if (more == 0) continue;
      const float total = count + more;
      const float delta = row[c] - mean;
      mean += delta * (more / total);
      m2 += row[channels + c] + delta * delta * (count * (more / total));
      count = total;
    }
    args.saved[c] = mean;
    args.saved[channels + c] = invstd_of(count > 0 ? m2 / count : 0.0f, args.eps);
    if (c == 0) args.saved[2 * channels] = count;
    if (!args.running_mean || count == 0) continue;
    const float unbiased = m2 / (count > 1 ? count - 1 : 1.0f);
    args.running_mean[c] = (1 - args.momentum) * args.running_mean[c] + args.momentum * mean;
    args.running_var[c] = (1 - args.momentum) * args.running_var[c] + args.momentum * unbiased;
  }
}

__global__ void batch_norm_from_running_channels_kernel(FromRunningArgs args) {
  const auto channels = static_cast<std::size_t>(args.channels);
  for (std::size_t c : simt::grid_range(channels)) {
    args.saved[c] = args.running_mean[c];
    args.saved[channels + c] = invstd_of(args.running_var[c], args.eps);
    if (c == 0) args.saved[2 * channels] = kInfinity;
  }
}

/// Rounds a value; in f16 what is beyond the range becomes its end.
template <class T>
__device__ inline T from_f32_in_range(float value) {
  if constexpr (std::is_same_v<T, __half>) {
    constexpr float kMost = 65504.0f;
    value = value > kMost ? kMost : value < -kMost ? -kMost : value;  // not min(): NaN must stay
  }
  return lib::from_f32<T>(value);
}

template <class T>
__global__ void batch_norm_fold_channels_kernel(SIMT_GRID_CONST(FoldArgs) args) {
  const auto value_of = [](const void* vector, std::int64_t c, float otherwise) {
    return vector ? lib::to_f32(static_cast<const T*>(vector)[c]) : otherwise;
  };
  for (std::int64_t c : lib::row_range(args.channels)) {
    const float scale = value_of(args.weight, c, 1) * invstd_of(args.running_var[c], args.eps);
    const T* const from = static_cast<const T*>(args.w) + c * args.fan_in;
    T* const to = static_cast<T*>(args.folded_w) + c * args.fan_in;
    for (int i : lib::lane_range(static_cast<int>(args.fan_in)))
      to[i] = from_f32_in_range<T>(lib::to_f32(from[i]) * scale);
    if (threadIdx.x > 0) continue;
    const float moved = value_of(args.b, c, 0) - args.running_mean[c];
    static_cast<T*>(args.folded_b)[c] = from_f32_in_range<T>(moved * scale + value_of(args.bias, c, 0));
  }
}

template <class T>
__global__ void batch_norm_normalize_channels_kernel(SIMT_GRID_CONST(NormalizeArgs) args) {
  const auto* const x = static_cast<const T*>(args.x);
  const auto* const residual = static_cast<const T*>(args.residual);
  for (std::int64_t row : lib::row_range(args.rows))
    for (int c : lib::lane_range(static_cast<int>(args.channels))) {
      const std::int64_t at = row * args.channels + c;
      float value = Forward::of<T>(args, c)(lib::to_f32(x[at]));
      if (residual) value += lib::to_f32(residual[at]);
      static_cast<T*>(args.y)[at] = lib::from_f32<T>(args.relu ? relu_of(value) : value);
    }
}

template <class T>
__global__ void batch_norm_backward_sums_channels_kernel(SIMT_GRID_CONST(BackwardSumsArgs) args, unsigned rows) {
  const auto* const x = static_cast<const T*>(args.x);
  const auto* const y = static_cast<const T*>(args.y);
  const auto* const dy = static_cast<const T*>(args.dy);
  const int c = static_cast<int>(blockIdx.x);
  const float mean = args.saved[c];
  float sums[2] = {0, 0};
  for (unsigned row : simt::block_range(0, rows)) {
    const std::int64_t at = std::int64_t{row} * args.channels + c;
    const float passed = !y || lib::to_f32(y[at]) > 0.0f ? lib::to_f32(dy[at]) : 0.0f;
    sums[0] += passed;
    sums[1] += passed * (lib::to_f32(x[at]) - mean);  // also of 0: a NaN in x must stay
  }
  using Totals = float[2];
  SIMT_SHARED(Totals, totals);
  lib::block_sum<kThreads>(sums, [&](int j, float total) { totals[j] = total; });
  __syncthreads();  // two threads wrote them
  if (threadIdx.x == 0) write_sums(args, c, totals[0], totals[1]);
}

template <class T>
__global__ void batch_norm_backward_channels_kernel(SIMT_GRID_CONST(BackwardArgs) args) {
  const auto* const x = static_cast<const T*>(args.x);
  const auto* const y = static_cast<const T*>(args.y);
  for (std::int64_t row : lib::row_range(args.rows))
    for (int c : lib::lane_range(static_cast<int>(args.channels))) {
      const std::int64_t at = row * args.channels + c;
      const bool passes = !y || lib::to_f32(y[at]) > 0.0f;
      const float dy = passes ? lib::to_f32(static_cast<const T*>(args.dy)[at]) : 0.0f;
      const float dx = Backward::of<T>(args, c)(lib::to_f32(x[at]), dy);
      if (args.dresidual) static_cast<T*>(args.dresidual)[at] = lib::from_f32<T>(dy);
      static_cast<T*>(args.dx)[at] = lib::from_f32<T>(dx);
    }
}

simt::Config block_per_channel(std::int64_t channels) {
  return {.grid = dim3(lib::narrow<unsigned>("batch_norm", "channels", channels)), .block = dim3(kThreads)};
}

void statistics(Stream& stream, const StatisticsArgs& args) {
  check_args(args);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch<batch_norm_statistics_channels_kernel<T>>(
        stream, block_per_channel(args.channels), static_cast<const T*>(args.x),
        lib::narrow<unsigned>("batch_norm", "rows", args.rows), static_cast<int>(args.channels), args.statistics);
  });
}

void normalize(Stream& stream, const NormalizeArgs& args) {
  check_args(args);
  if (args.rows == 0) return;
  lib::narrow<int>("batch_norm", "channels", args.channels);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<batch_norm_normalize_channels_kernel<T>>(
        stream, lib::rows_for(stream, args.rows, args.rows * args.channels), args);
  });
}

void backward_sums(Stream& stream, const BackwardSumsArgs& args) {
  check_args(args);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch<batch_norm_backward_sums_channels_kernel<T>>(stream, block_per_channel(args.channels), args,
                                                              lib::narrow<unsigned>("batch_norm", "rows", args.rows));
  });
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  if (args.rows == 0) return;
  lib::narrow<int>("batch_norm", "channels", args.channels);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<batch_norm_backward_channels_kernel<T>>(
        stream, lib::rows_for(stream, args.rows, args.rows * args.channels), args);
  });
}

std::size_t workspace_bytes(std::int64_t, std::int64_t) { return 0; }

}  // namespace

void merge(Stream& stream, const MergeArgs& args) {
  check_args(args);
  simt::launch_flat<batch_norm_merge_channels_kernel>(
      stream, simt::grid_for(stream, static_cast<std::size_t>(args.channels)), args);
}

void from_running(Stream& stream, const FromRunningArgs& args) {
  check_args(args);
  simt::launch_flat<batch_norm_from_running_channels_kernel>(
      stream, simt::grid_for(stream, static_cast<std::size_t>(args.channels)), args);
}

void fold(Stream& stream, const FoldArgs& args) {
  check_args(args);
  lib::narrow<int>("batch_norm", "fan_in", args.fan_in);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<batch_norm_fold_channels_kernel<T>>(
        stream, lib::rows_for(stream, args.channels, args.channels * args.fan_in), args);
  });
}

Variant channels() {
  return {"channels",      statistics,    merge,    from_running,    fold,
          normalize,       backward_sums, backward, workspace_bytes, lib::supports_floating,
          lib::is_floating};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::batch_norm
