// SPDX-License-Identifier: Apache-2.0
// batch_norm: the passes over a batch, and the steps between them. By default of the second stage of a ResNet-18 for
// images of 32 x 32 at batch 64, in a residual block: with ReLU and residual.

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/plain_loops.h"

namespace gradring::kernels::bench {
namespace {

constexpr double kF32Rounding = 0x1p-24;

struct NormalizedMatrix {
  std::int64_t rows, channels;
  double elements() const { return static_cast<double>(rows * channels); }
  std::size_t plain_rows() const { return static_cast<std::size_t>(rows); }
  std::size_t plain_channels() const { return static_cast<std::size_t>(channels); }
  /// The k of the contract's bounds.
  double k() const { return static_cast<double>(rows) / 256 + 300; }
};

NormalizedMatrix normalized_matrix(CaseMaker& make) {
  const std::int64_t rows = make.extent("rows", 64 * 16 * 16);
  return {rows, make.extent("channels", 128)};
}

/// {mean, invstd, count}, of elements in [-1, 1).
BenchArray& saved_of(CaseMaker& make, KernelCase& c, NormalizedMatrix m) {
  std::vector<double> saved(batch_norm::saved_elements(m.channels), 0.01);
  for (std::size_t i = m.plain_channels(); i < saved.size(); ++i) saved[i] = 1.75;
  saved.back() = static_cast<double>(m.rows);
  return make.array(c, DType::f32, saved);
}

/// Of what variants put between their two stages.
BenchArray& workspace_of(CaseMaker& make, KernelCase& c, NormalizedMatrix m) {
  std::size_t bytes = 0;
  for (const auto& variant : make.kernels().batch_norm)
    if (can_run(variant, make.device(), make.dtype()))
      bytes = std::max(bytes, variant.workspace_bytes(m.rows, m.channels));
  return make.workspace(c, bytes);
}

KernelCase batch_norm_statistics(CaseMaker& make) {
  const NormalizedMatrix m = normalized_matrix(make);
  const DType dtype = make.dtype();
  KernelCase c = make.make("batch_norm statistics");
  BenchArray& x = make.input(c, dtype, m.rows * m.channels);
  const auto elements = static_cast<std::int64_t>(batch_norm::statistics_elements(m.channels));
  // The mean of |x| is 1/2, M2 is rows / 3; the count is exact, but its bound is that of M2.
  const double e = m.k() * kF32Rounding;
  BenchArray& row = make.output(c, "statistics", DType::f32, elements, [e, m](double expected) {
    return e + (std::fabs(expected) > 2 ? e * (expected + 2 * static_cast<double>(m.rows)) : 0.0);
  });
  BenchArray& workspace = workspace_of(make, c, m);
  c.bytes = static_cast<double>(x.bytes());
  c.flops = 4 * m.elements();
  make.run(c, make.kernels().batch_norm, &batch_norm::Variant::statistics, batch_norm::reference_statistics,
           [&](Side side) {
             return batch_norm::StatisticsArgs{.dtype = dtype,
                                               .rows = m.rows,
                                               .channels = m.channels,
                                               .x = x.at(side),
                                               .statistics = row.as<float>(side),
                                               .workspace = workspace.at(side)};
           });
  if (make.has_plain_loops())
    c.plain_loop = [&x, &row, m] {
      plain().channel_statistics(x.floats(), row.floats(), m.plain_rows(), m.plain_channels());
    };
  return c;
}

KernelCase batch_norm_merge(CaseMaker& make) {
  const std::int64_t replicas = make.extent("replicas", 4);
  const std::int64_t channels = make.extent("channels", 128);
  KernelCase c = make.make("batch_norm merge");
  c.dtype = DType::f32;
  const auto elements = static_cast<std::int64_t>(batch_norm::statistics_elements(channels));
  BenchArray& rows = make.finite_input(c, DType::f32, replicas * elements, 0.5, 2);  // among them counts of rows
  BenchArray& mean = make.input(c, DType::f32, channels);
  BenchArray& var = make.input(c, DType::f32, channels, 0.5, 2);
  BenchArray& saved = make.output(c, "saved", DType::f32, elements, roundings(DType::f32, 64));
  CaseMaker::also_output(c, "running_mean", mean, roundings(DType::f32, 64, 8 * kF32Rounding));
  CaseMaker::also_output(c, "running_var", var, roundings(DType::f32, 64, 8 * kF32Rounding));
  c.bytes = static_cast<double>(rows.bytes() + saved.bytes() + 2 * mean.bytes() + 2 * var.bytes());
  make.run(c, make.kernels().batch_norm, &batch_norm::Variant::merge, batch_norm::reference_merge, [&](Side side) {
    return batch_norm::MergeArgs{.channels = channels,
                                 .replicas = replicas,
                                 .statistics = rows.as<float>(side),
                                 .saved = saved.as<float>(side),
                                 .running_mean = mean.as<float>(side),
                                 .running_var = var.as<float>(side)};
  });
  return c;
}

/// Of a 3 x 3 convolution of as many channels.
KernelCase batch_norm_fold(CaseMaker& make) {
  const std::int64_t channels = make.extent("channels", 128);
  const std::int64_t fan_in = make.extent("fan_in", 9 * channels);
  const DType dtype = make.dtype();
  KernelCase c = make.make("batch_norm fold");
  BenchArray& w = make.input(c, dtype, channels * fan_in);
  BenchArray& b = make.input(c, dtype, channels);
  BenchArray& mean = make.input(c, DType::f32, channels);
  BenchArray& var = make.input(c, DType::f32, channels, 0.5, 2);
  BenchArray& weight = make.input(c, dtype, channels, 0.5, 1.5);
  BenchArray& bias = make.input(c, dtype, channels);
  // The terms are below 2.2 and 5.3 in magnitude.
  BenchArray& folded_w =
      make.output(c, "folded_w", dtype, channels * fan_in, roundings(dtype, 2, 6 * kF32Rounding * 3));
  BenchArray& folded_b = make.output(c, "folded_b", dtype, channels, roundings(dtype, 2, 6 * kF32Rounding * 6));
  c.bytes = 2 * static_cast<double>(w.bytes());
  c.flops = static_cast<double>(channels * fan_in);
  make.run(c, make.kernels().batch_norm, &batch_norm::Variant::fold, batch_norm::reference_fold, [&](Side side) {
    return batch_norm::FoldArgs{.dtype = dtype,
                                .channels = channels,
                                .fan_in = fan_in,
                                .w = w.at(side),
                                .b = b.at(side),
                                .running_mean = mean.as<float>(side),
                                .running_var = var.as<float>(side),
                                .weight = weight.at(side),
                                .bias = bias.at(side),
                                .folded_w = folded_w.at(side),
                                .folded_b = folded_b.at(side)};
  });
  return c;
}

KernelCase batch_norm_normalize(CaseMaker& make) {
  const NormalizedMatrix m = normalized_matrix(make);
  const DType dtype = make.dtype();
  KernelCase c = make.make("batch_norm normalize");
  BenchArray& x = make.input(c, dtype, m.rows * m.channels);
  BenchArray& residual = make.input(c, dtype, m.rows * m.channels);
  BenchArray& weight = make.input(c, dtype, m.channels, 0.5, 1.5);
  BenchArray& bias = make.input(c, dtype, m.channels);
  BenchArray& saved = saved_of(make, c, m);
  BenchArray& y = make.output(c, "y", dtype, m.rows * m.channels, roundings(dtype, 2, 6 * kF32Rounding * 5));
  c.bytes = 3 * static_cast<double>(x.bytes());
  c.flops = 5 * m.elements();
  make.run(c, make.kernels().batch_norm, &batch_norm::Variant::normalize, batch_norm::reference_normalize,
           [&](Side side) {
             return batch_norm::NormalizeArgs{.dtype = dtype,
                                              .rows = m.rows,
                                              .channels = m.channels,
                                              .x = x.at(side),
                                              .weight = weight.at(side),
                                              .bias = bias.at(side),
                                              .residual = residual.at(side),
                                              .saved = saved.as<float>(side),
                                              .relu = true,
                                              .y = y.at(side)};
           });
  if (make.has_plain_loops())
    c.plain_loop = [&x, &residual, &weight, &bias, &saved, &y, m] {
      plain().normalize_channels(x.floats(), residual.floats(), weight.floats(), bias.floats(), saved.floats(),
                                 y.floats(), m.plain_rows(), m.plain_channels());
    };
  return c;
}

/// Inputs of a pass backward: y has zeros, which ReLU makes.
struct Gradient {
  BenchArray &x, &y, &dy, &saved;

  static Gradient of(CaseMaker& make, KernelCase& c, NormalizedMatrix m) {
    BenchArray& x = make.input(c, make.dtype(), m.rows * m.channels);
    BenchArray& y = make.input(c, make.dtype(), m.rows * m.channels, -1, 1, 0.5);
    BenchArray& dy = make.input(c, make.dtype(), m.rows * m.channels);
    return {x, y, dy, saved_of(make, c, m)};
  }
};

KernelCase batch_norm_backward_sums(CaseMaker& make) {
  const NormalizedMatrix m = normalized_matrix(make);
  const DType dtype = make.dtype();
  KernelCase c = make.make("batch_norm backward sums");
  const Gradient in = Gradient::of(make, c, m);
  const Bound bound = roundings(DType::f32, 4, m.k() * kF32Rounding * 2 * static_cast<double>(m.rows));
  BenchArray& sums = make.output(c, "sums", DType::f32, 2 * m.channels, bound);
  BenchArray& dweight = make.output(c, "dweight", DType::f32, m.channels, bound);
  BenchArray& dbias = make.output(c, "dbias", DType::f32, m.channels, bound);
  BenchArray& workspace = workspace_of(make, c, m);
  c.bytes = 3 * static_cast<double>(in.x.bytes());
  c.flops = 4 * m.elements();
  make.run(c, make.kernels().batch_norm, &batch_norm::Variant::backward_sums, batch_norm::reference_backward_sums,
           [&](Side side) {
             return batch_norm::BackwardSumsArgs{.dtype = dtype,
                                                 .rows = m.rows,
                                                 .channels = m.channels,
                                                 .x = in.x.at(side),
                                                 .y = in.y.at(side),
                                                 .dy = in.dy.at(side),
                                                 .saved = in.saved.as<float>(side),
                                                 .sums = sums.as<float>(side),
                                                 .dweight = dweight.as<float>(side),
                                                 .dbias = dbias.as<float>(side),
                                                 .workspace = workspace.at(side)};
           });
  if (make.has_plain_loops())
    c.plain_loop = [in, &sums, &dweight, &dbias, m] {
      plain().channel_gradient_sums(in.x.floats(), in.y.floats(), in.dy.floats(), in.saved.floats(), sums.floats(),
                                    m.plain_rows(), m.plain_channels());
      std::copy_n(sums.floats(), m.channels, dbias.floats());
      std::copy_n(sums.floats() + m.channels, m.channels, dweight.floats());
    };
  return c;
}

KernelCase batch_norm_backward(CaseMaker& make) {
  const NormalizedMatrix m = normalized_matrix(make);
  const DType dtype = make.dtype();
  KernelCase c = make.make("batch_norm backward");
  const Gradient in = Gradient::of(make, c, m);
  BenchArray& weight = make.input(c, dtype, m.channels, 0.5, 1.5);
  BenchArray& sums = make.input(c, DType::f32, 2 * m.channels);
  BenchArray& dx = make.output(c, "dx", dtype, m.rows * m.channels, roundings(dtype, 2, 16 * kF32Rounding * 2.7 * 2));
  BenchArray& dresidual = make.output(c, "dresidual", dtype, m.rows * m.channels, exact());
  c.bytes = 5 * static_cast<double>(in.x.bytes());
  c.flops = 5 * m.elements();
  make.run(c, make.kernels().batch_norm, &batch_norm::Variant::backward, batch_norm::reference_backward,
           [&](Side side) {
             return batch_norm::BackwardArgs{.dtype = dtype,
                                             .rows = m.rows,
                                             .channels = m.channels,
                                             .x = in.x.at(side),
                                             .y = in.y.at(side),
                                             .dy = in.dy.at(side),
                                             .weight = weight.at(side),
                                             .saved = in.saved.as<float>(side),
                                             .sums = sums.as<float>(side),
                                             .dx = dx.at(side),
                                             .dresidual = dresidual.at(side)};
           });
  if (make.has_plain_loops())
    c.plain_loop = [in, &weight, &sums, &dx, &dresidual, m] {
      plain().normalize_channels_backward(in.x.floats(), in.y.floats(), in.dy.floats(), weight.floats(),
                                          in.saved.floats(), sums.floats(), dx.floats(), dresidual.floats(),
                                          m.plain_rows(), m.plain_channels());
    };
  return c;
}

}  // namespace

Cases batch_norm_cases(CaseMaker& make) {
  return cases_of(make, batch_norm_statistics, batch_norm_merge, batch_norm_fold, batch_norm_normalize,
                  batch_norm_backward_sums, batch_norm_backward);
}

}  // namespace gradring::kernels::bench
