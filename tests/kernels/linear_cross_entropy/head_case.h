// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "tests/support/values.h"

namespace gradring::tests {

namespace head = kernels::linear_cross_entropy;

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
  kernels::DType dtype;
  HeadExtents extents;
  TypedArray h, w, b;
  std::vector<std::int32_t> labels;
  std::vector<float> workspace;
  float scale = 0.25f;
  std::optional<float> loss_scale;
  bool accumulate = false;

  HeadCase(const HeadExtents& e, kernels::DType type)
      : dtype(type),
        extents(e),
        h(type, random_values(size(e.rows * e.in), 1)),
        w(type, random_values(size(e.classes * e.in), 2, -weight(), weight())),
        b(type, random_values(size(e.classes), 3)) {
    for (double u : random_values(size(e.rows), 4, 0, static_cast<double>(e.classes)))
      labels.push_back(static_cast<std::int32_t>(u));
    workspace.assign(head::workspace_bytes(e.rows, e.classes) / sizeof(float), std::nanf(""));
  }

  /// Calls run(args) with everything filled in; dw and db start as 0.5.
  template <class Run>
  HeadResults call(Run run) {
    const auto& [rows, in, classes] = extents;
    HeadResults results{.logits = TypedArray::unwritten(dtype, size(rows * classes)),
                        .dh = TypedArray::unwritten(dtype, size(rows * in)),
                        .dw = std::vector<float>(size(classes * in), 0.5f),
                        .db = std::vector<float>(size(classes), 0.5f)};
    run(head::Args{.dtype = dtype,
                   .rows = rows,
                   .in = in,
                   .classes = classes,
                   .h = h.data(),
                   .w = w.data(),
                   .b = b.data(),
                   .labels = labels.data(),
                   .scale = scale,
                   .loss_scale = loss_scale ? &*loss_scale : nullptr,
                   .logits = results.logits.data(),
                   .dh = results.dh.data(),
                   .dw = results.dw.data(),
                   .db = results.db.data(),
                   .accumulate = accumulate,
                   .loss_sum = &results.loss_sum,
                   .correct = &results.correct,
                   .workspace = workspace.data()});
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
    const double row = (classes() + 8) * (2 * largest_logit() + 1 + std::log(classes()));
    return rows() * (2 * logit_error() + kUnit * (row + (rows() / 64 + 66) * 2 * (largest_logit() + 2)));
  }
  double d_error() const { return (2 * logit_error() + 2 * (classes() + 8) * kUnit) * full_scale(); }
  double dh_error() const { return classes() * weight() * (d_error() + (classes() + 2) * kUnit * full_scale()); }
  double dw_error() const { return rows() * (d_error() + (rows() / 64 + 66) * kUnit * full_scale()) + kUnit; }

 private:
  static std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }
};

inline std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

}  // namespace gradring::tests
