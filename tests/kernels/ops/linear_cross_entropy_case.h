// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::linear_cross_entropy {

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

inline std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

inline constexpr HeadExtents kCases[] = {{0, 5, 3},    {1, 1, 1},    {7, 9, 2},     {8, 8, 8},   {9, 31, 9},
                                         {33, 33, 10}, {65, 17, 32}, {16, 256, 10}, {600, 8, 10}};
inline constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

/// What HeadCase::call takes for a variant.
inline auto with(const Variant& variant, Stream& stream) {
  return [&](const Args& args) {
    variant.run(stream, args);
    finish(stream);
  };
}

inline void by_reference(const Args& args) { reference_run(args); }

inline void expect_within_bounds(const HeadCase& c, const HeadResults& actual, const HeadResults& expected) {
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

}  // namespace gradring::kernels::linear_cross_entropy
