// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/kernels/ops/batch_norm_batch.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::batch_norm {
namespace {

std::vector<Shape> shapes() {
  std::vector<Shape> all = {{33, 64}, {33, 100}, {33, 512}, {1000, 1}, {1000, 3}, {1000, 64}, {1000, 100}};
  for (const std::int64_t channels : {1, 3, 24})
    for (const std::int64_t rows : {0, 1, 2, 33}) all.push_back({rows, channels});
  all.push_back({40, 1032});  // several tiles of channels, the last one narrower
  return all;
}

/// For each column, the sum of f(element index).
template <class Term>
std::vector<double> column_sums(Shape shape, Term term) {
  std::vector<double> sums(size(shape.channels), 0.0);
  for (std::size_t i = 0; i < size(shape.rows * shape.channels); ++i) sums[i % sums.size()] += std::fabs(term(i));
  return sums;
}

/// The terms of the contract's bounds.
struct Bounds {
  Shape shape;
  DType dtype;
  std::size_t channels = size(shape.channels);
  double k = static_cast<double>(shape.rows) / 256 + 300;

  void expect_statistics(const Inputs& in, const Results& actual, const Results& expected) const {
    const std::vector<double> x = in.x.values(), values = expected.statistics.values();
    const std::vector<double> magnitudes = column_sums(shape, [&](std::size_t i) { return x[i]; });
    const double rows = std::max(static_cast<double>(shape.rows), 1.0);
    expect_close(actual.statistics.values(), values, [&](std::size_t i) {
      if (i == 2 * channels) return 0.0;
      const double e = k * kUnit * magnitudes[i % channels] / rows, m2 = values[channels + i % channels];
      return i < channels ? e : k * kUnit * m2 + 2 * e * std::sqrt(rows * m2) + rows * e * e;
    });
  }
  void expect_forward(const Inputs& in, Options options, const Results& actual, const Results& expected) const {
    const std::vector<double> x = in.x.values(), w = in.weight.values(), b = in.bias.values();
    const std::vector<double> saved = expected.saved.values(), y = expected.y.values(), r = in.residual.values();
    expect_close(actual.y.values(), y, [&](std::size_t i) {
      const std::size_t c = i % channels;
      const double product = (x[i] - saved[c]) * saved[channels + c] * (options.affine ? w[c] : 1);
      const double terms = std::fabs(product) + std::fabs(b[c]) + (options.residual ? std::fabs(r[i]) : 0);
      return 2 * rounding(dtype, y[i]) + 6 * kUnit * terms;
    });
  }
  void expect_backward(const Inputs& in, Options options, const Results& actual, const Results& expected) const {
    const std::vector<double> x = in.x.values(), w = in.weight.values(), dy = in.dy.values();
    const std::vector<double> saved = expected.saved.values(), sums = expected.sums.values();
    const std::vector<double> dx = expected.dx.values();
    const double rows = std::max(static_cast<double>(shape.rows), 1.0);
    const auto xhat = [&](std::size_t i) { return (x[i] - saved[i % channels]) * saved[channels + i % channels]; };
    const std::vector<double> of_dy = column_sums(shape, [&](std::size_t i) { return dy[i]; });
    const std::vector<double> of_product = column_sums(shape, [&](std::size_t i) { return dy[i] * xhat(i); });
    const auto bound = [&](std::size_t i) {
      return (k + 2) * kUnit * (1 + (i < channels ? of_dy[i] : of_product[i - channels]));
    };
    expect_close(actual.sums.values(), sums, bound);
    expect_close(actual.dbias.values(), expected.dbias.values(), bound);
    expect_close(actual.dweight.values(), expected.dweight.values(),
                 [&](std::size_t i) { return bound(channels + i); });
    expect_close(actual.dx.values(), dx, [&](std::size_t i) {
      const std::size_t c = i % channels;
      const double scale = saved[channels + c] * (options.affine ? w[c] : 1);
      const double terms =
          std::fabs(dy[i]) + std::fabs(sums[c] / rows) + std::fabs(xhat(i) * sums[channels + c] / rows);
      return 2 * rounding(dtype, dx[i]) + 16 * kUnit * std::fabs(scale) * terms;
    });
    if (options.residual) expect_equal(actual.dresidual.values(), expected.dresidual.values());
  }
};

TEST(BatchNorm, StaysWithinItsBounds) {
  for (DType dtype : kTypes) {
    std::size_t turn = 0;
    for (const Shape& shape : shapes()) {
      SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.channels));
      const Options options = kOptions[turn++ % std::size(kOptions)];
      const bool accumulate = turn % 3 == 0;
      const Inputs in(dtype, shape);
      const Results expected = reference(in, options, accumulate);
      const Bounds bounds{shape, dtype};
      for_each_variant(kernel_set().batch_norm, dtype, [&](const Variant& variant, Stream& stream) {
        const Results actual = run(variant, stream, in, options, expected, accumulate);
        bounds.expect_statistics(in, actual, expected);
        expect_merged(actual, expected, 4 * kUnit);
        bounds.expect_forward(in, options, actual, expected);
        bounds.expect_backward(in, options, actual, expected);
      });
    }
  }
}

TEST(BatchNorm, TakesEveryOptionalArgument) {
  for (DType dtype : kTypes)
    for (const std::int64_t channels : {7, 16})
      for (const Options options : {Options{.affine = true, .residual = true}, Options{.affine = false, .relu = true},
                                    Options{.affine = false, .residual = true, .relu = true}}) {
        const Inputs in(dtype, {70, channels});
        const Results expected = reference(in, options);
        for_each_variant(kernel_set().batch_norm, dtype, [&](const Variant& variant, Stream& stream) {
          const Results actual = run(variant, stream, in, options, expected);
          Bounds{in.shape, dtype}.expect_forward(in, options, actual, expected);
          Bounds{in.shape, dtype}.expect_backward(in, options, actual, expected);
        });
      }
}

TEST(BatchNorm, LargeMeanDoesNotCancelTheVariance) {
  for (const Shape shape : {Shape{1000, 5}, Shape{1000, 16}}) {
    Inputs in(DType::f32, shape, 31);
    std::vector<double> values = in.x.values();
    for (double& value : values) value += 4096;
    values[0] = values[1] = 1e6;  // an outlier in the first row must not spoil what it is compared with
    in.x = TypedArray(DType::f32, values);
    const Results expected = reference(in, {});
    const std::vector<double> statistics = expected.statistics.values();
    for_each_variant(kernel_set().batch_norm, DType::f32, [&](const Variant& variant, Stream& stream) {
      const Results actual = run(variant, stream, in, {}, expected);
      expect_close(actual.statistics.values(), statistics, [&](std::size_t i) { return 2e-5 * statistics[i]; });
    });
  }
}

TEST(BatchNorm, GivesTheSameBitsForAnyWorkers) {
  const Inputs in(DType::f32, {5000, 24}, 41);
  const Options options{.residual = true, .relu = true};
  const Results given = reference(in, options);
  for (const Variant& variant : kernel_set().batch_norm) {
    if (variant.computes && !variant.computes(DType::f32)) continue;
    std::vector<Results> all;
    for_each_stream([&](Device& device, Stream& stream) {
      if (can_run(variant, device, DType::f32)) all.push_back(run(variant, stream, in, options, given));
    });
    for (const Results& each : all) {
      EXPECT_EQ(each.statistics.values(), all[0].statistics.values()) << variant.name;
      EXPECT_EQ(each.sums.values(), all[0].sums.values()) << variant.name;
      EXPECT_EQ(each.y.values(), all[0].y.values()) << variant.name;
      EXPECT_EQ(each.dx.values(), all[0].dx.values()) << variant.name;
    }
  }
}

TEST(BatchNorm, GivesTheSameElementsInPlace) {
  for (DType dtype : kTypes)
    for (const std::int64_t channels : {3, 32}) {
      const Inputs in(dtype, {65, channels}, 51);
      const Options options{.residual = true, .relu = true};
      const Results given = reference(in, options);
      for_each_variant(kernel_set().batch_norm, dtype, [&](const Variant& variant, Stream& stream) {
        const Results apart = run(variant, stream, in, options, given);
        for (TypedArray Inputs::*input : {&Inputs::x, &Inputs::residual}) {
          Inputs copy = in;
          variant.normalize(stream, normalize_args(copy, options, given.saved, copy.*input));
          finish(stream);
          expect_equal((copy.*input).values(), apart.y.values());
        }
        Results to = given;
        Inputs copy = in;
        BackwardArgs args = backward_args(copy, options, given, given.sums, to);
        args.dx = copy.x.data();
        args.dresidual = copy.dy.data();
        variant.backward(stream, args);
        finish(stream);
        expect_equal(copy.x.values(), apart.dx.values());
        expect_equal(copy.dy.values(), apart.dresidual.values());
        copy = in;
        args.x = copy.x.data();
        args.dy = args.dx = copy.dy.data();
        args.y = args.dresidual = to.y.data();
        variant.backward(stream, args);
        finish(stream);
        expect_equal(copy.dy.values(), apart.dx.values());
        expect_equal(to.y.values(), apart.dresidual.values());
      });
    }
}

TEST(BatchNorm, TakesArraysAlignedToOneElement) {
  for (DType dtype : kTypes) {
    const Inputs in(dtype, {40, 16}, 61);
    const Results given = reference(in, {});
    const auto shifted = [dtype](const TypedArray& array) {
      std::vector<double> values = array.values();
      values.insert(values.begin(), 100.0);
      return TypedArray(dtype, values);
    };
    const auto past_first = [dtype](const TypedArray& array) {
      return static_cast<const std::byte*>(array.data()) + size_of(dtype);
    };
    const TypedArray x = shifted(in.x), dy = shifted(in.dy);
    for_each_variant(kernel_set().batch_norm, dtype, [&](const Variant& variant, Stream& stream) {
      Results actual(in);
      TypedArray workspace = floats(variant.workspace_bytes(40, 16) / sizeof(float));
      StatisticsArgs statistics = statistics_args(in, actual, workspace.data());
      NormalizeArgs normalize = normalize_args(in, {}, given.saved, actual.y);
      BackwardSumsArgs sums = sums_args(in, {}, given, actual, false, workspace.data());
      BackwardArgs backward = backward_args(in, {}, given, given.sums, actual);
      statistics.x = normalize.x = sums.x = backward.x = past_first(x);
      sums.dy = backward.dy = past_first(dy);
      variant.statistics(stream, statistics);
      variant.normalize(stream, normalize);
      variant.backward_sums(stream, sums);
      variant.backward(stream, backward);
      finish(stream);
      Bounds{in.shape, dtype}.expect_statistics(in, actual, given);
      Bounds{in.shape, dtype}.expect_forward(in, {}, actual, given);
      Bounds{in.shape, dtype}.expect_backward(in, {}, actual, given);
    });
  }
}

TEST(BatchNorm, KeepsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Inputs in(DType::f32, {20, 8}, 71);
  std::vector<double> values = in.x.values();
  values[8 * 7 + 3] = nan;
  in.x = TypedArray(DType::f32, values);
  for_each_variant(kernel_set().batch_norm, DType::f32, [&](const Variant& variant, Stream& stream) {
    const Results given = reference(in, {.relu = true});
    const Results actual = run(variant, stream, in, {.relu = true}, given);
    for (std::size_t c = 0; c < 8; ++c) {
      EXPECT_EQ(std::isnan(actual.statistics.values()[c]), c == 3);
      EXPECT_EQ(std::isnan(actual.y.values()[c]), c == 3);
      EXPECT_EQ(std::isnan(actual.sums.values()[8 + c]), c == 3);
    }
  });
}

/// Weights of a convolution, the normalization of its output, and what they are folded to.
struct Folding {
  DType dtype;
  std::int64_t channels, fan_in;
  TypedArray w = array(size(channels * fan_in), 1), b = array(size(channels), 2), weight = array(size(channels), 3),
             bias = array(size(channels), 4);
  TypedArray mean = TypedArray(DType::f32, random_values(size(channels), 5));
  TypedArray var = TypedArray(DType::f32, random_values(size(channels), 6, 0.25, 4));

  TypedArray array(std::size_t elements, std::uint64_t seed) const {
    return TypedArray(dtype, random_values(elements, seed));
  }
  FoldArgs args(TypedArray& folded_w, TypedArray& folded_b, bool optional = true) const {
    return {.dtype = dtype,
            .channels = channels,
            .fan_in = fan_in,
            .w = w.data(),
            .b = optional ? b.data() : nullptr,
            .running_mean = static_cast<const float*>(mean.data()),
            .running_var = static_cast<const float*>(var.data()),
            .eps = 1e-3f,
            .weight = optional ? weight.data() : nullptr,
            .bias = optional ? bias.data() : nullptr,
            .folded_w = folded_w.data(),
            .folded_b = folded_b.data()};
  }
};

TEST(BatchNorm, FoldStaysWithinItsBounds) {
  for (DType dtype : kTypes)
    for (const auto& [channels, fan_in] : {Shape{1, 1}, Shape{3, 27}, Shape{33, 100}, Shape{64, 576}})
      for (const bool optional : {true, false}) {
        const Folding in{dtype, channels, fan_in};
        TypedArray expected_w = in.w, expected_b = in.b;
        reference_fold(in.args(expected_w, expected_b, optional));
        const std::vector<double> w = expected_w.values(), b = expected_b.values();
        for_each_variant(kernel_set().batch_norm, dtype, [&](const Variant& variant, Stream& stream) {
          TypedArray folded_w = TypedArray::unwritten(dtype, w.size()),
                     folded_b = TypedArray::unwritten(dtype, b.size());
          variant.fold(stream, in.args(folded_w, folded_b, optional));
          finish(stream);
          expect_close(folded_w.values(), w,
                       [&](std::size_t i) { return 2 * rounding(dtype, w[i]) + 6 * kUnit * std::fabs(w[i]); });
          expect_close(folded_b.values(), b,  // the terms are below 4 in magnitude
                       [&](std::size_t i) { return 2 * rounding(dtype, b[i]) + 6 * kUnit * 12; });
          Folding copy = in;  // in place
          FoldArgs args = copy.args(copy.w, copy.b, optional);
          variant.fold(stream, args);
          finish(stream);
          expect_equal(copy.w.values(), folded_w.values());
          expect_equal(copy.b.values(), folded_b.values());
        });
      }
}

TEST(BatchNorm, FoldKeepsAChannelWithoutVarianceFinite) {
  for (DType dtype : kTypes) {
    Folding in{dtype, 2, 3};
    in.var = TypedArray(DType::f32, std::vector<double>{0, 1});
    in.weight = TypedArray(dtype, std::vector<double>{1, 1});
    for_each_variant(kernel_set().batch_norm, dtype, [&](const Variant& variant, Stream& stream) {
      TypedArray folded_w = in.w, folded_b = in.b;
      FoldArgs args = in.args(folded_w, folded_b);
      args.eps = 1e-12f;
      variant.fold(stream, args);
      finish(stream);
      for (const double value : folded_w.values()) EXPECT_TRUE(std::isfinite(value));
      for (const double value : folded_b.values()) EXPECT_TRUE(std::isfinite(value));
    });
  }
}

TEST(BatchNorm, RejectsImpossibleExtentsNullAndOtherTypes) {
  float data[64] = {};
  const auto rejects = [](auto args, auto spoil) {
    EXPECT_NO_THROW(check_args(args));
    spoil(args);
    EXPECT_THROW(check_args(args), InvalidArgument);
  };
  const StatisticsArgs statistics{DType::f32, 2, 3, data, data + 8};
  rejects(statistics, [](StatisticsArgs& args) { args.rows = -1; });
  rejects(statistics, [](StatisticsArgs& args) { args.channels = 0; });
  rejects(statistics, [](StatisticsArgs& args) { args.dtype = DType::u8; });
  rejects(statistics, [](StatisticsArgs& args) { args.x = nullptr; });
  rejects(statistics, [](StatisticsArgs& args) { args.statistics = nullptr; });
  const MergeArgs merge{.channels = 3, .statistics = data, .saved = data + 8};
  rejects(merge, [](MergeArgs& args) { args.replicas = 0; });
  rejects(merge, [](MergeArgs& args) { args.statistics = nullptr; });
  rejects(merge, [](MergeArgs& args) { args.saved = nullptr; });
  rejects(merge, [&](MergeArgs& args) { args.saved = data + 6; });
  rejects(merge, [&](MergeArgs& args) { args.running_mean = data + 20; });
  const FromRunningArgs running{.channels = 3, .running_mean = data, .running_var = data + 3, .saved = data + 8};
  rejects(running, [](FromRunningArgs& args) { args.running_var = nullptr; });
  const FoldArgs fold{.channels = 2,
                      .fan_in = 3,
                      .w = data,
                      .running_mean = data + 8,
                      .running_var = data + 10,
                      .folded_w = data + 16,
                      .folded_b = data + 22};
  rejects(fold, [](FoldArgs& args) { args.fan_in = 0; });
  rejects(fold, [](FoldArgs& args) { args.running_mean = nullptr; });
  rejects(fold, [&](FoldArgs& args) { args.folded_w = data + 5; });
  const NormalizeArgs normalize{.rows = 2, .channels = 3, .x = data, .saved = data + 8, .y = data + 16};
  rejects(normalize, [](NormalizeArgs& args) { args.y = nullptr; });
  rejects(normalize, [&](NormalizeArgs& args) { args.y = data + 1; });
  rejects(normalize, [&](NormalizeArgs& args) { args.residual = data + 15; });
  const BackwardSumsArgs sums{.rows = 2, .channels = 3, .x = data, .dy = data, .saved = data + 8, .sums = data + 16};
  rejects(sums, [](BackwardSumsArgs& args) { args.dy = nullptr; });
  rejects(sums, [](BackwardSumsArgs& args) { args.sums = nullptr; });
  const BackwardArgs backward{
      .rows = 2, .channels = 3, .x = data, .dy = data + 6, .saved = data + 16, .sums = data + 24, .dx = data + 6};
  rejects(backward, [](BackwardArgs& args) { args.dx = nullptr; });
  rejects(backward, [](BackwardArgs& args) { args.replicas = 0; });
  rejects(backward, [](BackwardArgs& args) { args.dresidual = args.dx; });
  rejects(backward, [&](BackwardArgs& args) { args.dx = data + 5; });
}

}  // namespace
}  // namespace gradring::kernels::batch_norm
