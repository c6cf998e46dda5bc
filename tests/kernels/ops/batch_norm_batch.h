// SPDX-License-Identifier: Apache-2.0
// A batch for the tests of batch normalization: random inputs, the arguments of every pass, and their results.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/ops/batch_norm/batch_norm.h"
#include "tests/support/each_stream.h"
#include "tests/support/expect_close.h"
#include "tests/support/values.h"

namespace gradring::kernels::batch_norm {

using namespace gradring::tests;

inline constexpr double kUnit = 0x1p-24;
inline constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

struct Shape {
  std::int64_t rows, channels;
};

inline std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }
inline TypedArray floats(std::size_t elements) { return TypedArray::unwritten(DType::f32, elements); }

/// Random inputs of one batch, each channel around a mean of its own.
struct Inputs {
  DType dtype;
  Shape shape;
  TypedArray x, residual, dy, weight, bias;

  Inputs(DType type, Shape extents, std::uint64_t seed = 1)
      : dtype(type),
        shape(extents),
        x(type, shifted(seed)),
        residual(type, random_values(elements(), seed + 1)),
        dy(type, random_values(elements(), seed + 2)),
        weight(type, random_values(size(extents.channels), seed + 3, 0.5, 2)),
        bias(type, random_values(size(extents.channels), seed + 4)) {}

  std::size_t elements() const { return size(shape.rows * shape.channels); }
  std::vector<double> shifted(std::uint64_t seed) const {
    std::vector<double> values = random_values(elements(), seed);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<double>(i % size(shape.channels) % 5) - 2;
    return values;
  }
};

/// Whether the optional arguments are given.
struct Options {
  bool affine = true, residual = false, relu = false;
};
inline constexpr Options kOptions[] = {{}, {.relu = true}, {.residual = true, .relu = true}, {.affine = false}};

/// The results of all passes over one batch.
struct Results {
  TypedArray statistics, saved, running_mean, running_var, y, sums, dweight, dbias, dx, dresidual;

  explicit Results(const Inputs& in)
      : statistics(floats(statistics_elements(in.shape.channels))),
        saved(floats(saved_elements(in.shape.channels))),
        running_mean(DType::f32, random_values(size(in.shape.channels), 11)),
        running_var(DType::f32, random_values(size(in.shape.channels), 12, 0.5, 2)),
        y(TypedArray::unwritten(in.dtype, in.elements())),
        sums(floats(sums_elements(in.shape.channels))),
        dweight(DType::f32, random_values(size(in.shape.channels), 13)),
        dbias(DType::f32, random_values(size(in.shape.channels), 14)),
        dx(TypedArray::unwritten(in.dtype, in.elements())),
        dresidual(dx) {}
};

inline StatisticsArgs statistics_args(const Inputs& in, Results& to, void* workspace = nullptr) {
  return {in.dtype, in.shape.rows, in.shape.channels, in.x.data(), to.statistics.as<float>(), workspace};
}

inline MergeArgs merge_args(Shape shape, const TypedArray& statistics, Results& to) {
  return {.channels = shape.channels,
          .replicas = static_cast<std::int64_t>(statistics.elements() / statistics_elements(shape.channels)),
          .statistics = static_cast<const float*>(statistics.data()),
          .eps = 1e-3f,
          .saved = to.saved.as<float>(),
          .running_mean = to.running_mean.as<float>(),
          .running_var = to.running_var.as<float>(),
          .momentum = 0.3f};
}

inline NormalizeArgs normalize_args(const Inputs& in, Options options, const TypedArray& saved, TypedArray& y) {
  return {.dtype = in.dtype,
          .rows = in.shape.rows,
          .channels = in.shape.channels,
          .x = in.x.data(),
          .weight = options.affine ? in.weight.data() : nullptr,
          .bias = options.affine ? in.bias.data() : nullptr,
          .residual = options.residual ? in.residual.data() : nullptr,
          .saved = static_cast<const float*>(saved.data()),
          .relu = options.relu,
          .y = y.data()};
}

inline BackwardSumsArgs sums_args(const Inputs& in, Options options, const Results& forward, Results& to,
                                  bool accumulate, void* workspace = nullptr) {
  return {.dtype = in.dtype,
          .rows = in.shape.rows,
          .channels = in.shape.channels,
          .x = in.x.data(),
          .y = options.relu ? forward.y.data() : nullptr,
          .dy = in.dy.data(),
          .saved = static_cast<const float*>(forward.saved.data()),
          .sums = to.sums.as<float>(),
          .dweight = options.affine ? to.dweight.as<float>() : nullptr,
          .dbias = options.affine ? to.dbias.as<float>() : nullptr,
          .accumulate = accumulate,
          .workspace = workspace};
}

inline BackwardArgs backward_args(const Inputs& in, Options options, const Results& forward, const TypedArray& sums,
                                  Results& to) {
  return {.dtype = in.dtype,
          .rows = in.shape.rows,
          .channels = in.shape.channels,
          .x = in.x.data(),
          .y = options.relu ? forward.y.data() : nullptr,
          .dy = in.dy.data(),
          .weight = options.affine ? in.weight.data() : nullptr,
          .saved = static_cast<const float*>(forward.saved.data()),
          .sums = static_cast<const float*>(sums.data()),
          .replicas = static_cast<std::int64_t>(sums.elements() / sums_elements(in.shape.channels)),
          .dx = to.dx.data(),
          .dresidual = options.residual ? to.dresidual.data() : nullptr};
}

inline Results reference(const Inputs& in, Options options, bool accumulate = false) {
  Results all(in);
  reference_statistics(statistics_args(in, all));
  reference_merge(merge_args(in.shape, all.statistics, all));
  reference_normalize(normalize_args(in, options, all.saved, all.y));
  reference_backward_sums(sums_args(in, options, all, all, accumulate));
  reference_backward(backward_args(in, options, all, all.sums, all));
  return all;
}

/// Every pass of a variant; each gets what `given`, the reference, made in the passes before it.
inline Results run(const Variant& variant, Stream& stream, const Inputs& in, Options options, const Results& given,
                   bool accumulate = false) {
  Results all(in);
  const std::size_t bytes = variant.workspace_bytes(in.shape.rows, in.shape.channels);
  TypedArray first = TypedArray::unwritten(DType::f32, bytes / sizeof(float)), second = first;
  variant.statistics(stream, statistics_args(in, all, first.data()));
  variant.merge(stream, merge_args(in.shape, given.statistics, all));
  variant.normalize(stream, normalize_args(in, options, given.saved, all.y));
  variant.backward_sums(stream, sums_args(in, options, given, all, accumulate, second.data()));
  variant.backward(stream, backward_args(in, options, given, given.sums, all));
  finish(stream);
  return all;
}

/// Of what merge writes, relative to 1 + the magnitude.
inline void expect_merged(const Results& actual, const Results& expected, double tolerance) {
  const auto relative = [tolerance](const TypedArray& to) {
    return [tolerance, values = to.values()](std::size_t i) { return tolerance * (1 + std::fabs(values[i])); };
  };
  expect_close(actual.saved.values(), expected.saved.values(), relative(expected.saved));
  expect_close(actual.running_mean.values(), expected.running_mean.values(), relative(expected.running_mean));
  expect_close(actual.running_var.values(), expected.running_var.values(), relative(expected.running_var));
}

}  // namespace gradring::kernels::batch_norm
