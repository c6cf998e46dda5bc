// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/lib/variant.h"

/// Batch normalization of x: [rows, channels] (rows = batch * height * width of an NHWC tensor), per channel c:
///
///   mean[c], var[c] = mean and biased variance of the column x[:,c]        invstd[c] = 1 / sqrt(var[c] + eps)
///   y[r,c] = act((x[r,c] - mean[c]) * invstd[c] * weight[c] + bias[c] + residual[r,c])    act: identity or ReLU
///
/// In steps, so that several replicas (ranks of SyncBatchNorm) may normalize by common statistics: they gather their
/// rows of statistics, or of backward sums, between two steps.
///
///   training     statistics -> [all-gather] -> merge -> normalize       backward_sums -> [all-gather] -> backward
///   evaluation   from_running -> normalize                              backward_sums -> backward
///                fold, if a convolution gives x
///
/// Shapes    x, y, residual and their gradients: [rows, channels], row-major, contiguous; weight, bias: [channels];
///           rows >= 0, channels >= 1.
/// Types     x, y, residual, dy, dx, dresidual, weight and bias: all f32, all f16 or all bf16. Everything else: f32.
/// Order     enqueued on the stream; returns at once.
/// Errors    InvalidArgument if an extent is out of range, a pointer null that must not be, memory overlaps other than
///           stated, or the type is another one.
/// Numerics  deterministic: on one kind of device, the order of every sum depends on rows, channels, type and the
///           alignment of the arrays alone, not on how many multiprocessors or workers there are. u below is 2^-24.
/// Source    Ioffe and Szegedy, arXiv:1502.03167 (2015); merging: Chan, Golub and LeVeque, "Updating formulae and a
///           pairwise algorithm for computing sample variances" (1979).
/// Example   tests/kernels/ops/batch_norm_test.cpp
namespace gradring::kernels::batch_norm {

/// Elements of a row of statistics: mean[channels], M2[channels], count.
constexpr std::size_t statistics_elements(std::int64_t channels) { return 2 * static_cast<std::size_t>(channels) + 1; }
/// Elements of what forward saves for backward: mean[channels], invstd[channels], count.
constexpr std::size_t saved_elements(std::int64_t channels) { return statistics_elements(channels); }
/// Elements of a row of backward sums: sum_dy[channels], sum_dy_xhat[channels].
constexpr std::size_t sums_elements(std::int64_t channels) { return 2 * static_cast<std::size_t>(channels); }

/// One replica's statistics: the mean of each channel, the sum of squared deviations from it (M2), and the number of
/// rows; zeros for no rows.
///
/// Numerics  no cancellation: deviations are taken from a mean of some of the rows, never from 0. With
///           k = rows / 256 + 300 and e = k * u * (mean of |x[:,c]|), the mean is within e, and M2 within
///           k * u * M2 + 2 * e * sqrt(rows * M2) + rows * e^2. The count is exact up to 2^24 rows.
/// Cost      reads rows * channels * size_of(dtype) bytes once ('channels': twice); about 4 operations per element.
struct StatisticsArgs {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  const void* x = nullptr;
  float* statistics = nullptr;  ///< statistics_elements(channels)
  void* workspace = nullptr;    ///< Variant::workspace_bytes(rows, channels), aligned to 16; null if that is 0
};

/// Merges the statistics of `replicas` replicas in their order, by Chan's formula: the same bits on every rank. Replicas
/// without rows change nothing.
///
///   saved = {mean, 1 / sqrt(M2 / count + eps), count}        with no rows at all: {0, 1 / sqrt(eps), 0}
///   running_mean = (1 - momentum) * running_mean + momentum * mean
///   running_var  = (1 - momentum) * running_var  + momentum * M2 / max(count - 1, 1)      both as PyTorch
///
/// With no rows at all running statistics stay as they are. With one row the variance is 0, where PyTorch has NaN.
struct MergeArgs {
  std::int64_t channels = 0;
  std::int64_t replicas = 1;
  const float* statistics = nullptr;  ///< [replicas, statistics_elements(channels)]
  float eps = 1e-5f;
  float* saved = nullptr;         ///< saved_elements(channels)
  float* running_mean = nullptr;  ///< [channels]; updated; both null: none are kept
  float* running_var = nullptr;
  float momentum = 0.1f;
};

/// The same result from running statistics: saved = {running_mean, 1 / sqrt(running_var + eps), infinity}. Rows do not
/// move these statistics, which is what an infinite count makes of the backward pass.
struct FromRunningArgs {
  std::int64_t channels = 0;
  const float* running_mean = nullptr;
  const float* running_var = nullptr;
  float eps = 1e-5f;
  float* saved = nullptr;
};

/// A convolution with weights w and bias b, and the evaluation of its output, as one convolution, for each channel c:
///
///   folded_w[c,i] = w[c,i] * scale[c]        folded_b[c] = (b[c] - running_mean[c]) * scale[c] + bias[c]
///   scale[c] = weight[c] / sqrt(running_var[c] + eps)
///
/// Shapes    w, folded_w: [channels, fan_in], contiguous, fan_in >= 1; all others: [channels].
/// Types     w, b, weight, bias and the results: all f32, all f16 or all bf16.
/// Aliasing  folded_w may be w, and folded_b may be b or bias.
/// Numerics  in f32, rounded once: error below one rounding to the type + 6 * u * (the terms' magnitudes). In f16 what is
///           beyond 65504 becomes that: the weights of a channel with hardly any variance stay finite.
/// Cost      reads w, writes folded_w.
/// Source    torch/nn/utils/fusion.py, fuse_conv_bn_weights.
struct FoldArgs {
  DType dtype = DType::f32;
  std::int64_t channels = 0;
  std::int64_t fan_in = 0;
  const void* w = nullptr;
  const void* b = nullptr;  ///< null: 0
  const float* running_mean = nullptr;
  const float* running_var = nullptr;
  float eps = 1e-5f;
  const void* weight = nullptr;  ///< null: 1
  const void* bias = nullptr;    ///< null: 0
  void* folded_w = nullptr;
  void* folded_b = nullptr;
};

/// y = act((x - mean) * invstd * weight + bias + residual)
///
/// Aliasing  y may be x or residual; backward needs x.
/// Numerics  in f32, rounded once: error below one rounding to the type + 6 * u * (|the product| + |bias| + |residual|).
///           NaN stays NaN, also through ReLU.
/// Cost      reads x (and residual), writes y.
struct NormalizeArgs {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  const void* x = nullptr;
  const void* weight = nullptr;    ///< null: 1
  const void* bias = nullptr;      ///< null: 0
  const void* residual = nullptr;  ///< null: 0
  const float* saved = nullptr;
  bool relu = false;
  void* y = nullptr;
};

/// One replica's sums, with dy' = dy where y > 0 and 0 elsewhere (all of dy if y is null), xhat = (x - mean) * invstd:
///
///   sums = {sum_r dy'[r,c], sum_r dy'[r,c] * xhat[r,c]}        zeros for no rows
///   dbias, dweight = the same, of this replica's rows (+ what they hold, if `accumulate`)
///
/// Numerics  error below (rows / 256 + 300) * u * the sum of the magnitudes of the terms.
/// Cost      reads dy, x and, with ReLU, y once.
struct BackwardSumsArgs {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  const void* x = nullptr;
  const void* y = nullptr;  ///< the output of a forward pass with ReLU; null without
  const void* dy = nullptr;
  const float* saved = nullptr;
  float* sums = nullptr;     ///< sums_elements(channels)
  float* dweight = nullptr;  ///< [channels], or null: not wanted
  float* dbias = nullptr;    ///< likewise
  bool accumulate = false;
  void* workspace = nullptr;  ///< as in StatisticsArgs
};

/// With S, P the sums of `replicas` rows of sums, added in their order, and N the count in `saved`:
///
///   dx = weight * invstd * (dy' - S / N - xhat * P / N)        dresidual = dy'
///
/// Aliasing  dx may be dy, x or y; dresidual may be dy or y (each element is read before it is written); dx and
///           dresidual are apart.
/// Numerics  in f32, rounded once: error below one rounding to the type
///           + 16 * u * |weight * invstd| * (|dy'| + |S / N| + |xhat * P / N|).
/// Cost      reads dy, x and, with ReLU, y; writes dx and dresidual.
struct BackwardArgs {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  const void* x = nullptr;
  const void* y = nullptr;  ///< as in BackwardSumsArgs
  const void* dy = nullptr;
  const void* weight = nullptr;  ///< null: 1
  const float* saved = nullptr;
  const float* sums = nullptr;  ///< [replicas, sums_elements(channels)]
  std::int64_t replicas = 1;
  void* dx = nullptr;
  void* dresidual = nullptr;  ///< null: not wanted
};

void check_args(const StatisticsArgs& args);
void check_args(const MergeArgs& args);
void check_args(const FromRunningArgs& args);
void check_args(const FoldArgs& args);
void check_args(const NormalizeArgs& args);
void check_args(const BackwardSumsArgs& args);
void check_args(const BackwardArgs& args);
void reference_statistics(const StatisticsArgs& args);
void reference_merge(const MergeArgs& args);
void reference_from_running(const FromRunningArgs& args);
void reference_fold(const FoldArgs& args);
void reference_normalize(const NormalizeArgs& args);
void reference_backward_sums(const BackwardSumsArgs& args);
void reference_backward(const BackwardArgs& args);

struct Variant {
  std::string_view name;
  void (*statistics)(Stream&, const StatisticsArgs&) = nullptr;
  void (*merge)(Stream&, const MergeArgs&) = nullptr;
  void (*from_running)(Stream&, const FromRunningArgs&) = nullptr;
  void (*fold)(Stream&, const FoldArgs&) = nullptr;
  void (*normalize)(Stream&, const NormalizeArgs&) = nullptr;
  void (*backward_sums)(Stream&, const BackwardSumsArgs&) = nullptr;
  void (*backward)(Stream&, const BackwardArgs&) = nullptr;
  /// Of statistics and backward_sums; enough for fewer rows, too.
  std::size_t (*workspace_bytes)(std::int64_t rows, std::int64_t channels);
  bool (*supports)(const Device&, DType);
  bool (*computes)(DType);
};

}  // namespace gradring::kernels::batch_norm
