// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/variant.h"

namespace gradring::kernels::softmax_cross_entropy {

/// Softmax and cross-entropy in one: the loss, its gradient, and how many rows are classified rightly.
///   p[r,c] = exp(x[r,c] - m_r) / s_r,   m_r = max_c x[r,c],   s_r = sum_c exp(x[r,c] - m_r)
///   *loss_sum = sum_r (m_r + log s_r - x[r, label_r])
///   dlogits[r,c] = (p[r,c] - [c == label_r]) * (scale * loss_scale)
///   *correct  = the number of rows whose first maximum is at label_r
/// For the mean over a batch that several ranks share, scale = 1 / samples of the global batch.
///
/// Shapes    logits, dlogits: [rows, classes], row-major, contiguous; labels: [rows]; rows >= 0, classes >= 1.
/// Types     logits, dlogits: f32, f16 or bf16; labels: i32; everything between in f32.
/// Aliasing  dlogits may be logits, or null when only the loss is wanted. loss_scale, loss_sum, correct and workspace
///           are device memory; both results are overwritten (rows = 0: with 0).
/// Order     enqueued on the stream; returns at once.
/// Errors    InvalidArgument if rows < 0, classes < 1, a pointer is null, or the type none of the three. A label
///           outside [0, classes) is found on the device only: that row's loss and gradient are NaN, and it counts as
///           wrong.
/// Numerics  deterministic; a row with a NaN has a NaN loss and counts as wrong. Row loss: error below
///           (classes + 8) * 2^-24 * (|m_r| + |x[r,label_r]| + 1 + log classes); dlogits: (classes + 8) * 2^-23 *
///           scale * loss_scale, and one rounding to the type.
/// Cost      reads and writes rows * classes * size_of(dtype) bytes; classes exponentials a row.
/// Example   tests/kernels/softmax_cross_entropy_test.cpp
struct Args {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  const void* logits = nullptr;
  const std::int32_t* labels = nullptr;
  float scale = 1;
  const float* loss_scale = nullptr;  ///< what the device decides (StepState::loss_scale); null: 1
  void* dlogits = nullptr;
  float* loss_sum = nullptr;
  std::int32_t* correct = nullptr;
  void* workspace = nullptr;  ///< workspace_bytes(rows) bytes, aligned to 16
};

/// Scratch memory of one call: a loss and a verdict per row. Never 0, so that it can always be allocated.
constexpr std::size_t workspace_bytes(std::int64_t rows) {
  return static_cast<std::size_t>(rows > 0 ? rows : 1) * (sizeof(float) + sizeof(std::int32_t));
}

void check_args(const Args& args);

namespace reference {
void run(const Args& args);
/// One row: returns its loss, says whether it is right, and replaces the logits by their gradient.
double differentiate(std::span<double> x, std::int32_t label, double scale, bool& right);
}  // namespace reference

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::softmax_cross_entropy
