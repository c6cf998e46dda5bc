// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/bias/bias.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/ops/gemm/gemm.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/partial_sums.h"
#include "tests/support/values.h"

namespace gradring::kernels::linear_cross_entropy {
namespace {

using namespace gradring::tests;

struct HeadExtents {
  std::int64_t rows, in, classes;
};

struct HeadResults {
  TypedArray logits, dh;
  std::vector<float> dw, db;
  float loss_sum = -1;
  std::int32_t correct = -1;
};

/// h, w and b in [-1, 1), w divided by the square root of `in`; labels; and the workspace that a call may use.
struct HeadCase {
  DType dtype;
  HeadExtents extents;
  TypedArray h, w, b;
  std::vector<std::int32_t> labels;
  std::vector<float> workspace;
  std::vector<std::int32_t> labels_b;  // none: hard labels
  std::vector<float> weights_b;
  float label_smoothing = 0;
  float scale = 0.25f;
  std::optional<float> loss_scale;
  bool accumulate = false;
  bool h_is_relu = false;
  PartialSums* partial_sums = nullptr;
  unsigned arrivals = 0;

  HeadCase(const HeadExtents& e, DType type)
      : dtype(type),
        extents(e),
        h(type, random_values(size(e.rows * e.in), 1)),
        w(type, random_values(size(e.classes * e.in), 2, -weight(), weight())),
        b(type, random_values(size(e.classes), 3)) {
    for (double u : random_values(size(e.rows), 4, 0, static_cast<double>(e.classes)))
      labels.push_back(static_cast<std::int32_t>(u));
    workspace.assign(workspace_bytes(e.rows, e.in, e.classes) / sizeof(float), std::nanf(""));
  }

  /// Adds second labels with weights, and label smoothing.
  void soften() {
    for (double u : random_values(size(extents.rows), 5, 0, static_cast<double>(extents.classes)))
      labels_b.push_back(static_cast<std::int32_t>(u));
    for (double u : random_values(size(extents.rows), 6, 0, 1)) weights_b.push_back(static_cast<float>(u));
    label_smoothing = 0.1f;
  }

  SoftTargets soft() const {
    return {.labels_b = labels_b.empty() ? nullptr : labels_b.data(),
            .weights_b = weights_b.empty() ? nullptr : weights_b.data(),
            .label_smoothing = label_smoothing};
  }

  /// Calls run(args) with everything filled in; dw and db start as 0.5.
  template <class Run>
  HeadResults call(Run run) {
    const auto& [rows, in, classes] = extents;
    HeadResults results{.logits = TypedArray::unwritten(dtype, size(rows * classes)),
                        .dh = TypedArray::unwritten(dtype, size(rows * in)),
                        .dw = std::vector<float>(size(classes * in), 0.5f),
                        .db = std::vector<float>(size(classes), 0.5f)};
    run(Args{.dtype = dtype,
             .rows = rows,
             .in = in,
             .classes = classes,
             .h = h.data(),
             .w = w.data(),
             .b = b.data(),
             .labels = labels.data(),
             .soft = soft(),
             .scale = scale,
             .loss_scale = loss_scale ? &*loss_scale : nullptr,
             .logits = results.logits.data(),
             .dh = results.dh.data(),
             .h_is_relu = h_is_relu,
             .dw = results.dw.data(),
             .db = results.db.data(),
             .accumulate = accumulate,
             .loss_sum = &results.loss_sum,
             .correct = &results.correct,
             .arrivals = partial_sums ? &arrivals : nullptr,
             .workspace = workspace.data(),
             .partial_sums = partial_sums});
    return results;
  }

  // The bounds of the contract, with |h|, |b| <= 1, |w| <= weight() and |d| <= the scale.
  static constexpr double kUnit = 0x1p-24;
  double rows() const { return static_cast<double>(extents.rows); }
  double in() const { return static_cast<double>(extents.in); }
  double classes() const { return static_cast<double>(extents.classes); }
  double weight() const { return 1 / std::sqrt(in()); }
  double full_scale() const { return static_cast<double>(scale) * loss_scale.value_or(1.0f); }
  double largest_logit() const { return in() * weight() + 1; }
  double logit_error() const { return (in() + 8) * kUnit * largest_logit(); }
  double loss_error() const {
    const double terms = (classes() + 8) * (soft().used() ? 2 : 1);
    const double row = terms * (2 * largest_logit() + 1 + std::log(classes()));
    return rows() * (2 * logit_error() + kUnit * (row + (rows() / 64 + 66) * 2 * (largest_logit() + 2)));
  }
  double d_error() const { return (2 * logit_error() + 2 * (classes() + 8) * kUnit) * full_scale(); }
  double dh_error() const { return classes() * weight() * (d_error() + (classes() + 2) * kUnit * full_scale()); }
  double dw_error() const { return rows() * (d_error() + (rows() / 64 + 66) * kUnit * full_scale()) + kUnit; }

 private:
  static std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }
};

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

constexpr HeadExtents kCases[] = {{0, 5, 3},    {1, 1, 1},    {7, 9, 2},     {8, 8, 8},   {9, 31, 9},
                                  {33, 33, 10}, {65, 17, 32}, {16, 256, 10}, {600, 8, 10}};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

/// What HeadCase::call takes for a variant.
auto with(const Variant& variant, Stream& stream) {
  return [&](const Args& args) {
    variant.run(stream, args);
    finish(stream);
  };
}

void by_reference(const Args& args) { reference_run(args); }

void expect_within_bounds(const HeadCase& c, const HeadResults& actual, const HeadResults& expected) {
  const auto near = [&](const TypedArray& found, const TypedArray& truth, double error) {
    const std::vector<double> values = truth.values();
    expect_close(found.values(), values,
                 [&](std::size_t i) { return error + 2 * rounding(c.dtype, std::fabs(values[i]) + error); });
  };
  near(actual.logits, expected.logits, c.logit_error());
  near(actual.dh, expected.dh, c.dh_error());
  expect_close(doubles(actual.dw), doubles(expected.dw), [&](std::size_t) { return c.dw_error(); });
  expect_close(doubles(actual.db), doubles(expected.db), [&](std::size_t) { return c.dw_error(); });
  EXPECT_NEAR(actual.loss_sum, expected.loss_sum, c.loss_error());
  EXPECT_EQ(actual.correct, expected.correct);
}

TEST(LinearCrossEntropy, StaysWithinItsBounds) {
  for (DType dtype : kTypes)
    for (const HeadExtents& extents : kCases) {
      HeadCase c(extents, dtype);
      const HeadResults expected = c.call(by_reference);
      for_each_variant(kernel_set().linear_cross_entropy, dtype, [&](const Variant& variant, Stream& stream) {
        SCOPED_TRACE("rows " + std::to_string(extents.rows) + ", in " + std::to_string(extents.in));
        expect_within_bounds(c, c.call(with(variant, stream)), expected);
      });
    }
}

TEST(LinearCrossEntropy, StaysWithinItsBoundsForSoftTargets) {
  for (DType dtype : kTypes)
    for (const HeadExtents& extents : kCases) {
      HeadCase c(extents, dtype);
      c.soften();
      const HeadResults expected = c.call(by_reference);
      for_each_variant(kernel_set().linear_cross_entropy, dtype, [&](const Variant& variant, Stream& stream) {
        SCOPED_TRACE("rows " + std::to_string(extents.rows) + ", in " + std::to_string(extents.in));
        expect_within_bounds(c, c.call(with(variant, stream)), expected);
      });
    }
}

TEST(LinearCrossEntropy, AccumulatesGradientsAndAppliesTheLossScale) {
  HeadCase plain({9, 17, 10}, DType::f32);
  const HeadResults bare = plain.call(by_reference);
  HeadCase c = plain;
  c.accumulate = true;
  c.loss_scale = 64.0f;
  const HeadResults expected = c.call(by_reference);
  EXPECT_EQ(expected.loss_sum, bare.loss_sum);
  for (std::size_t i = 0; i < bare.dw.size(); ++i) EXPECT_NEAR(expected.dw[i], 0.5f + 64 * bare.dw[i], 1e-5);
  for_each_variant(kernel_set().linear_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
    expect_within_bounds(c, c.call(with(variant, stream)), expected);
  });
  HeadCase nobody({0, 17, 10}, DType::f32);
  nobody.accumulate = true;
  for_each_variant(kernel_set().linear_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
    EXPECT_EQ(nobody.call(with(variant, stream)).dw, std::vector<float>(170, 0.5f));
  });
}

/// max(values, 0); NaN stays NaN.
TypedArray rectified(const TypedArray& array) {
  std::vector<double> values = array.values();
  for (double& value : values) value = value < 0 ? 0.0 : value;
  return TypedArray(array.dtype(), values);
}

TEST(LinearCrossEntropy, MasksTheGradientOfAReluAsReluBackwardDoes) {
  for (DType dtype : kTypes)
    for (const HeadExtents& extents : kCases) {
      HeadCase c(extents, dtype);
      c.h = rectified(c.h);
      const HeadResults unmasked = c.call(by_reference);
      c.h_is_relu = true;
      const HeadResults expected = c.call(by_reference);
      const std::vector<double> h = c.h.values(), masked = expected.dh.values(), all = unmasked.dh.values();
      for (std::size_t i = 0; i < h.size(); ++i) EXPECT_EQ(masked[i], h[i] > 0 ? all[i] : 0.0);
      for_each_variant(kernel_set().linear_cross_entropy, dtype, [&](const Variant& variant, Stream& stream) {
        SCOPED_TRACE("rows " + std::to_string(extents.rows) + ", in " + std::to_string(extents.in));
        const HeadResults actual = c.call(with(variant, stream));
        expect_within_bounds(c, actual, expected);
        const std::vector<double> dh = actual.dh.values();
        for (std::size_t i = 0; i < h.size(); ++i) EXPECT_TRUE(h[i] > 0 || dh[i] == 0) << i;
      });
    }
}

TEST(LinearCrossEntropy, LeavesPartialSumsAndFindsTheLossInOneLaunch) {
  for (DType dtype : kTypes)
    for (const HeadExtents& extents : kCases) {
      HeadCase c(extents, dtype);
      const HeadResults expected = c.call(by_reference);
      for_each_variant(kernel_set().linear_cross_entropy, dtype, [&](const Variant& variant, Stream& stream) {
        SCOPED_TRACE("rows " + std::to_string(extents.rows) + ", in " + std::to_string(extents.in));
        for (int call = 0; call < 2; ++call) {  // the second finds what the first leaves in `arrivals`
          PartialSums left;
          c.partial_sums = &left;
          const HeadResults actual = c.call([&](const Args& args) {
            variant.run(stream, args);
            finish(stream);
            add_up(left);
          });
          c.partial_sums = nullptr;
          EXPECT_EQ(left.size(), variant.name == "one_launch" && extents.rows > 0 ? 2u : 0u);
          EXPECT_EQ(c.arrivals, 0u);
          expect_within_bounds(c, actual, expected);
        }
      });
    }
}

TEST(LinearCrossEntropy, GivesOnlyTheLossWithoutGradientPointers) {
  const auto expect_loss_only = [](auto run) {
    HeadCase c({33, 17, 10}, DType::f32);
    const HeadResults with_gradient = c.call(run);
    const HeadResults without = c.call([&](Args args) {
      args.logits = args.dh = nullptr;
      args.dw = args.db = nullptr;
      run(args);
    });
    EXPECT_EQ(without.loss_sum, with_gradient.loss_sum);
    EXPECT_EQ(without.correct, with_gradient.correct);
    EXPECT_EQ(without.dw, std::vector<float>(170, 0.5f));
  };
  expect_loss_only(by_reference);
  for_each_variant(kernel_set().linear_cross_entropy, DType::f32,
                   [&](const Variant& variant, Stream& stream) { expect_loss_only(with(variant, stream)); });
}

TEST(LinearCrossEntropy, GivesTheSameBitsForAnyWorkers) {
  HeadCase c({65, 33, 10}, DType::f32);
  for (const Variant& variant : kernel_set().linear_cross_entropy) {
    std::vector<HeadResults> all;
    for_each_stream([&](Device&, Stream& stream) { all.push_back(c.call(with(variant, stream))); });
    for (const HeadResults& one : all) {
      EXPECT_EQ(one.dw, all.front().dw);
      EXPECT_EQ(one.db, all.front().db);
      EXPECT_EQ(one.loss_sum, all.front().loss_sum);
    }
  }
}

TEST(LinearCrossEntropy, InvalidLabelMakesItsRowAndTheWeightsNaN) {
  HeadCase c({3, 4, 3}, DType::f32);
  HeadCase soft = c;
  soft.labels = {0, 1, 2};
  soft.labels_b = {1, 1, 1};
  soft.weights_b = {0.5f, -0.5f, 0.5f};
  c.labels = {0, 3, 1};
  const auto expect_spoilt = [](const HeadResults& results) {
    const std::vector<double> dh = results.dh.values();
    for (std::size_t i = 0; i < dh.size(); ++i) EXPECT_EQ(std::isnan(dh[i]), i / 4 == 1);
    for (float dw : results.dw) EXPECT_TRUE(std::isnan(dw));
    EXPECT_TRUE(std::isnan(results.loss_sum));
  };
  for (HeadCase* const spoilt : {&c, &soft}) {
    expect_spoilt(spoilt->call(by_reference));
    for_each_variant(kernel_set().linear_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
      expect_spoilt(spoilt->call(with(variant, stream)));
    });
  }
}

TEST(LinearCrossEntropy, ReferenceGradientsMatchFiniteDifferences) {
  HeadCase c({4, 5, 3}, DType::f32);
  const HeadResults at = c.call(by_reference);
  const auto loss_with = [&](TypedArray HeadCase::*argument) {
    return [&c, argument](std::span<const double> values) {
      HeadCase moved = c;
      moved.*argument = TypedArray(DType::f32, values);
      return c.scale * static_cast<double>(moved.call(by_reference).loss_sum);
    };
  };
  expect_gradient(loss_with(&HeadCase::h), c.h.values(), at.dh.values(), 0x1p-6, 1e-4);
  expect_gradient(loss_with(&HeadCase::w), c.w.values(), doubles(at.dw), 0x1p-6, 1e-4);
  expect_gradient(loss_with(&HeadCase::b), c.b.values(), doubles(at.db), 0x1p-6, 1e-4);
}

TEST(LinearCrossEntropy, RejectsNullBadExtentsHalfAGradientAndOtherTypes) {
  HeadCase c({2, 3, 4}, DType::f32);
  const auto refuse = [&](auto change) {
    c.call([&](Args args) {
      EXPECT_NO_THROW(check_args(args));
      change(args);
      EXPECT_THROW(check_args(args), InvalidArgument);
    });
  };
  refuse([](Args& args) { args.dtype = DType::i32; });
  refuse([](Args& args) { args.rows = -1; });
  refuse([](Args& args) { args.in = 0; });
  refuse([](Args& args) { args.classes = 0; });
  refuse([](Args& args) { args.classes = kMostClasses + 1; });
  refuse([](Args& args) { args.h = nullptr; });
  refuse([](Args& args) { args.b = nullptr; });
  refuse([](Args& args) { args.labels = nullptr; });
  refuse([](Args& args) { args.dh = nullptr; });
  refuse([](Args& args) { args.db = nullptr; });
  refuse([](Args& args) { args.dw = args.db = nullptr; });
  refuse([](Args& args) { args.correct = nullptr; });
  refuse([](Args& args) { args.workspace = nullptr; });
  refuse([&](Args& args) { args.dh = c.h.data(); });
  refuse([&](Args& args) { args.soft.labels_b = c.labels.data(); });
  refuse([](Args& args) { args.soft.label_smoothing = 2; });
}

/// gemm, bias, softmax_cross_entropy, and their gradients, one after the other.
void run_apart(Stream& stream, const Args& args) {
  const auto classes = static_cast<std::size_t>(args.classes);
  TypedArray dlogits = TypedArray::unwritten(args.dtype, static_cast<std::size_t>(args.rows) * classes);
  std::vector<float> workspace(softmax_cross_entropy::workspace_bytes(args.rows) / sizeof(float));
  const auto& gemm = kernel_set().gemm.front();
  const auto& bias = kernel_set().bias.front();
  gemm.run(stream, {.dtype = args.dtype,
                    .c_dtype = args.dtype,
                    .m = args.rows,
                    .n = args.classes,
                    .k = args.in,
                    .transpose_b = true,
                    .a = args.h,
                    .b = args.w,
                    .c = args.logits});
  bias.add(stream, {args.dtype, args.rows, args.classes, args.logits, args.b, args.logits});
  kernel_set().softmax_cross_entropy.front().run(stream, {.dtype = args.dtype,
                                                          .rows = args.rows,
                                                          .classes = args.classes,
                                                          .logits = args.logits,
                                                          .labels = args.labels,
                                                          .soft = args.soft,
                                                          .scale = args.scale,
                                                          .dlogits = dlogits.data(),
                                                          .loss_sum = args.loss_sum,
                                                          .correct = args.correct,
                                                          .workspace = workspace.data()});
  gemm.run(stream, {.dtype = args.dtype,
                    .c_dtype = args.dtype,
                    .m = args.rows,
                    .n = args.in,
                    .k = args.classes,
                    .a = dlogits.data(),
                    .b = args.w,
                    .c = args.dh});
  gemm.run(stream, {.dtype = args.dtype,
                    .m = args.classes,
                    .n = args.in,
                    .k = args.rows,
                    .transpose_a = true,
                    .a = dlogits.data(),
                    .b = args.h,
                    .c = args.dw});
  bias.grad(stream, {args.dtype, args.rows, args.classes, dlogits.data(), args.db});
  finish(stream);  // before dlogits goes
}

TEST(LinearCrossEntropy, AgreesWithTheSeparateKernels) {
  for (const HeadExtents& extents : {HeadExtents{33, 64, 10}, HeadExtents{8, 17, 32}}) {
    HeadCase c(extents, DType::f32);
    if (extents.classes == 32) c.soften();
    for_each_variant(kernel_set().linear_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
      const HeadResults apart = c.call([&](const Args& args) { run_apart(stream, args); });
      const HeadResults fused = c.call([&](const Args& args) {
        variant.run(stream, args);
        finish(stream);
      });
      expect_close(fused.logits.values(), apart.logits.values(), [&](std::size_t) { return 2 * c.logit_error(); });
      expect_close(fused.dh.values(), apart.dh.values(), [&](std::size_t) { return 2 * c.dh_error(); });
      expect_close(doubles(fused.dw), doubles(apart.dw), [&](std::size_t) { return 2 * c.dw_error(); });
      expect_close(doubles(fused.db), doubles(apart.db), [&](std::size_t) { return 2 * c.dw_error(); });
      EXPECT_NEAR(fused.loss_sum, apart.loss_sum, 2 * c.loss_error());
      EXPECT_EQ(fused.correct, apart.correct);
    });
  }
}

}  // namespace
}  // namespace gradring::kernels::linear_cross_entropy
