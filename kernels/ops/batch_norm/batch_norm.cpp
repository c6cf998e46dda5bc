// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/batch_norm/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/lib/reference.h"

namespace gradring::kernels::batch_norm {
namespace {

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

/// What the passes over x have in common.
template <class Args>
void check_matrix(std::string_view pass, const Args& args) {
  lib::check_floating(pass, "dtype", args.dtype);
  lib::check_at_least(pass, 0, {{"rows", args.rows}});
  lib::check_at_least(pass, 1, {{"channels", args.channels}});
  lib::check_array(pass, "x", args.x, args.rows);
}

template <class Args>
std::size_t bytes_of(const Args& args) {
  return lib::bytes_of(args.rows * args.channels, args.dtype);
}

template <class Args>
std::vector<double> read(const Args& args, const void* from) {
  return lib::read_values(args.dtype, from, size(args.rows * args.channels));
}

/// A vector of `channels` numbers of the matrix's type, or `otherwise` everywhere.
template <class Args>
std::vector<double> read_vector(const Args& args, const void* from, double otherwise) {
  if (!from) return std::vector<double>(size(args.channels), otherwise);
  return lib::read_values(args.dtype, from, size(args.channels));
}

/// dy' of the contract.
template <class Args>
std::vector<double> read_masked(const Args& args) {
  std::vector<double> dy = read(args, args.dy);
  if (!args.y || args.rows == 0) return dy;
  const std::vector<double> y = read(args, args.y);
  for (std::size_t i = 0; i < dy.size(); ++i)
    if (!(y[i] > 0)) dy[i] = 0;
  return dy;
}

}  // namespace

void check_args(const StatisticsArgs& args) {
  check_matrix("batch_norm statistics", args);
  lib::check_pointer("batch_norm statistics", "statistics", args.statistics);
}

void check_args(const MergeArgs& args) {
  constexpr std::string_view kPass = "batch_norm merge";
  lib::check_at_least(kPass, 1, {{"channels", args.channels}, {"replicas", args.replicas}});
  lib::check_pointers(kPass, {{"statistics", args.statistics}, {"saved", args.saved}});
  if (args.running_mean || args.running_var)
    lib::check_pointers(kPass, {{"running_mean", args.running_mean}, {"running_var", args.running_var}});
  lib::check_apart(kPass, args.statistics, size(args.replicas) * statistics_elements(args.channels) * sizeof(float),
                   args.saved, saved_elements(args.channels) * sizeof(float));
}

void check_args(const FromRunningArgs& args) {
  constexpr std::string_view kPass = "batch_norm from_running";
  lib::check_at_least(kPass, 1, {{"channels", args.channels}});
  lib::check_pointers(kPass,
                      {{"running_mean", args.running_mean}, {"running_var", args.running_var}, {"saved", args.saved}});
}

void check_args(const FoldArgs& args) {
  constexpr std::string_view kPass = "batch_norm fold";
  lib::check_floating(kPass, "dtype", args.dtype);
  lib::check_at_least(kPass, 1, {{"channels", args.channels}, {"fan_in", args.fan_in}});
  lib::check_pointers(kPass, {{"w", args.w},
                              {"running_mean", args.running_mean},
                              {"running_var", args.running_var},
                              {"folded_w", args.folded_w},
                              {"folded_b", args.folded_b}});
  lib::check_same_or_apart(kPass, args.w, args.folded_w, lib::bytes_of(args.channels * args.fan_in, args.dtype));
}

void check_args(const NormalizeArgs& args) {
  constexpr std::string_view kPass = "batch_norm normalize";
  check_matrix(kPass, args);
  lib::check_array(kPass, "y", args.y, args.rows);
  lib::check_pointer(kPass, "saved", args.saved);
  lib::check_same_or_apart(kPass, args.x, args.y, bytes_of(args));
  lib::check_same_or_apart(kPass, args.residual, args.y, bytes_of(args));
}

void check_args(const BackwardSumsArgs& args) {
  constexpr std::string_view kPass = "batch_norm backward_sums";
  check_matrix(kPass, args);
  lib::check_array(kPass, "dy", args.dy, args.rows);
  lib::check_pointers(kPass, {{"saved", args.saved}, {"sums", args.sums}});
}

void check_args(const BackwardArgs& args) {
  constexpr std::string_view kPass = "batch_norm backward";
  check_matrix(kPass, args);
  lib::check_at_least(kPass, 1, {{"replicas", args.replicas}});
  lib::check_array(kPass, "dy", args.dy, args.rows);
  lib::check_array(kPass, "dx", args.dx, args.rows);
  lib::check_pointers(kPass, {{"saved", args.saved}, {"sums", args.sums}});
  for (const void* input : {args.x, args.y, args.dy})
    for (const void* output : {static_cast<const void*>(args.dx), static_cast<const void*>(args.dresidual)})
      lib::check_same_or_apart(kPass, input, output, bytes_of(args));
  lib::check_apart(kPass, args.dx, bytes_of(args), args.dresidual, bytes_of(args));
}

void reference_statistics(const StatisticsArgs& args) {
  check_args(args);
  const std::size_t rows = size(args.rows), channels = size(args.channels);
  const std::vector<double> x = read(args, args.x);
  std::vector<double> row(statistics_elements(args.channels), 0.0);
  for (std::size_t c = 0; c < channels && rows > 0; ++c) {
    double sum = 0, m2 = 0;
    for (std::size_t r = 0; r < rows; ++r) sum += x[r * channels + c];
    const double mean = sum / static_cast<double>(rows);
    for (std::size_t r = 0; r < rows; ++r) m2 += (x[r * channels + c] - mean) * (x[r * channels + c] - mean);
    row[c] = mean;
    row[channels + c] = m2;
  }
  row[2 * channels] = static_cast<double>(rows);
  lib::write_values(DType::f32, args.statistics, row);
}

void reference_merge(const MergeArgs& args) {
  check_args(args);
  const std::size_t channels = size(args.channels), elements = statistics_elements(args.channels);
  const std::vector<double> all = lib::read_values(DType::f32, args.statistics, size(args.replicas) * elements);
  std::vector<double> saved(elements, 0.0);
  for (std::size_t c = 0; c < channels; ++c) {
    double count = 0, sum = 0, m2 = 0;
    for (std::size_t row = 0; row < all.size(); row += elements) {
      count += all[row + 2 * channels];
      sum += all[row + 2 * channels] * all[row + c];
    }
    const double mean = count > 0 ? sum / count : 0;
    for (std::size_t row = 0; row < all.size(); row += elements)
      m2 += all[row + channels + c] + all[row + 2 * channels] * (all[row + c] - mean) * (all[row + c] - mean);
    saved[c] = mean;
    saved[channels + c] = 1 / std::sqrt((count > 0 ? m2 / count : 0) + double{args.eps});
    saved[2 * channels] = count;
    if (!args.running_mean || count == 0) continue;
    const double momentum = args.momentum, unbiased = m2 / std::max(count - 1, 1.0);
    args.running_mean[c] = static_cast<float>((1 - momentum) * args.running_mean[c] + momentum * mean);
    args.running_var[c] = static_cast<float>((1 - momentum) * args.running_var[c] + momentum * unbiased);
  }
  lib::write_values(DType::f32, args.saved, saved);
}

void reference_from_running(const FromRunningArgs& args) {
  check_args(args);
  const std::size_t channels = size(args.channels);
  std::vector<double> saved(saved_elements(args.channels), std::numeric_limits<double>::infinity());
  for (std::size_t c = 0; c < channels; ++c) {
    saved[c] = args.running_mean[c];
    saved[channels + c] = 1 / std::sqrt(double{args.running_var[c]} + double{args.eps});
  }
  lib::write_values(DType::f32, args.saved, saved);
}

void reference_fold(const FoldArgs& args) {
  check_args(args);
  const std::size_t fan_in = size(args.fan_in);
  const std::vector<double> weight = read_vector(args, args.weight, 1), bias = read_vector(args, args.bias, 0);
  std::vector<double> w = lib::read_values(args.dtype, args.w, size(args.channels) * fan_in);
  std::vector<double> b = read_vector(args, args.b, 0);
  const double most = args.dtype == DType::f16 ? 65504 : std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < b.size(); ++c) {
    const double scale = weight[c] / std::sqrt(double{args.running_var[c]} + double{args.eps});
    for (std::size_t i = c * fan_in; i < (c + 1) * fan_in; ++i) w[i] = std::clamp(w[i] * scale, -most, most);
    b[c] = std::clamp((b[c] - args.running_mean[c]) * scale + bias[c], -most, most);
  }
  lib::write_values(args.dtype, args.folded_w, w);
  lib::write_values(args.dtype, args.folded_b, b);
}

void reference_normalize(const NormalizeArgs& args) {
  check_args(args);
  if (args.rows == 0) return;
  const std::size_t channels = size(args.channels);
  const std::vector<double> weight = read_vector(args, args.weight, 1), bias = read_vector(args, args.bias, 0);
  const std::vector<double> saved = lib::read_values(DType::f32, args.saved, saved_elements(args.channels));
  const std::vector<double> residual = args.residual ? read(args, args.residual) : std::vector<double>();
  std::vector<double> y = read(args, args.x);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t c = i % channels;
    y[i] = (y[i] - saved[c]) * saved[channels + c] * weight[c] + bias[c];
    if (args.residual) y[i] += residual[i];
    if (args.relu && y[i] < 0) y[i] = 0;
  }
  lib::write_values(args.dtype, args.y, y);
}

void reference_backward_sums(const BackwardSumsArgs& args) {
  check_args(args);
  const std::size_t channels = size(args.channels);
  const std::vector<double> x = read(args, args.x), dy = read_masked(args);
  const std::vector<double> saved = lib::read_values(DType::f32, args.saved, saved_elements(args.channels));
  std::vector<double> sums(sums_elements(args.channels), 0.0);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const std::size_t c = i % channels;
    sums[c] += dy[i];
    sums[channels + c] += dy[i] * (x[i] - saved[c]) * saved[channels + c];
  }
  lib::write_values(DType::f32, args.sums, sums);
  const auto add = [&](float* to, std::span<const double> values) {
    for (std::size_t c = 0; to && c < channels; ++c)
      to[c] = static_cast<float>(values[c] + (args.accumulate ? double{to[c]} : 0));
  };
  add(args.dbias, std::span(sums).first(channels));
  add(args.dweight, std::span(sums).last(channels));
}

void reference_backward(const BackwardArgs& args) {
  check_args(args);
  if (args.rows == 0) return;
  const std::size_t channels = size(args.channels), elements = sums_elements(args.channels);
  const std::vector<double> x = read(args, args.x), dy = read_masked(args);
  const std::vector<double> weight = read_vector(args, args.weight, 1);
  const std::vector<double> saved = lib::read_values(DType::f32, args.saved, saved_elements(args.channels));
  const std::vector<double> all = lib::read_values(DType::f32, args.sums, size(args.replicas) * elements);
  std::vector<double> means(elements, 0.0);
  for (std::size_t i = 0; i < all.size(); ++i) means[i % elements] += all[i];
  for (double& mean : means) mean /= saved[2 * channels];
  std::vector<double> dx(dy.size());
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const std::size_t c = i % channels;
    const double invstd = saved[channels + c];
    dx[i] = weight[c] * invstd * (dy[i] - means[c] - (x[i] - saved[c]) * invstd * means[channels + c]);
  }
  lib::write_values(args.dtype, args.dx, dx);
  if (args.dresidual) lib::write_values(args.dtype, args.dresidual, dy);
}

}  // namespace gradring::kernels::batch_norm
