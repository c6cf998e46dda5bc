// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/lib/partial_sums.h"
#include "kernels/lib/variant.h"

namespace gradring::kernels::softmax_cross_entropy {

/// What turns labels into distributions over the classes: a second class with a weight, as mixup and cutmix make them,
/// and label smoothing. With w = weights_b[r] (0 without) and e = label_smoothing:
///   t[r,c] = (1 - e) * ((1 - w) * [c == label_r] + w * [c == label_b_r]) + e / classes
/// By default, t[r,c] = [c == label_r], which kernels compute without what soft targets need.
///
/// Source    Szegedy and others, "Rethinking the Inception architecture", 2016; torch.nn.CrossEntropyLoss
///           (label_smoothing) has the same formula, for hard labels and for probabilities.
struct SoftTargets {
  const std::int32_t* labels_b = nullptr;  ///< [rows]; null: hard labels
  const float* weights_b = nullptr;        ///< [rows], each in [0, 1]; null exactly if labels_b is
  float label_smoothing = 0;               ///< in [0, 1]

  constexpr bool used() const { return labels_b != nullptr || label_smoothing > 0; }
};

/// Softmax and cross-entropy in one: the loss, its gradient, and how many rows are classified rightly.
///   p[r,c] = exp(x[r,c] - m_r) / s_r,   m_r = max_c x[r,c],   s_r = sum_c exp(x[r,c] - m_r)
///   *loss_sum = sum_r (m_r + log s_r - sum_c t[r,c] x[r,c]), where terms with t[r,c] = 0 are 0
///   dlogits[r,c] = (p[r,c] - t[r,c]) * (scale * loss_scale)
///   *correct  = the number of rows whose first maximum is at label_r; at label_b_r, where that weighs more than 0.5
/// t is that of SoftTargets; with hard labels, [c == label_r]. For the mean over a batch that several ranks share,
/// scale = 1 / samples of the global batch.
///
/// Shapes    logits, dlogits: [rows, classes], row-major, contiguous; labels, labels_b, weights_b: [rows]; rows >= 0,
///           classes >= 1.
/// Types     logits, dlogits: f32, f16 or bf16; labels: i32; weights_b: f32; everything between in f32.
/// Aliasing  dlogits may be logits, or null when only the loss is wanted. loss_scale, loss_sum, correct and workspace
///           are device memory; both results are overwritten (rows = 0: with 0).
/// Order     enqueued on the stream; returns at once.
/// Errors    InvalidArgument if rows < 0, classes < 1, a pointer is null, one of labels_b and weights_b alone is null,
///           label_smoothing is outside [0, 1], or the type none of the three. A label outside [0, classes) or a weight
///           outside [0, 1] is found on the device only: that row's loss and gradient are NaN, and it counts as wrong.
/// Numerics  deterministic; a row with a NaN has a NaN loss and counts as wrong. Row loss: error below
///           (classes + 8) * 2^-24 * (|m_r| + |x[r,label_r]| + 1 + log classes), with soft targets twice that, of
///           max_c |x[r,c]|; dlogits: (classes + 8) * 2^-23 * scale * loss_scale, and one rounding to the type.
/// Cost      reads and writes rows * classes * size_of(dtype) bytes; classes exponentials a row.
/// Example   tests/kernels/ops/softmax_cross_entropy_test.cpp
struct Args {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  const void* logits = nullptr;
  const std::int32_t* labels = nullptr;
  SoftTargets soft = {};
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
/// Errors    InvalidArgument, with the operation's name in the message.
void check_soft(std::string_view op, const SoftTargets& soft);
void reference_run(const Args& args);

/// The target of one row.
struct RowTarget {
  std::int32_t label = 0;
  std::int32_t label_b = 0;
  double weight_b = 0;
  double label_smoothing = 0;

  RowTarget(const std::int32_t* labels, const SoftTargets& soft, std::size_t row)
      : label(labels[row]),
        label_b(soft.labels_b ? soft.labels_b[row] : label),
        weight_b(soft.weights_b ? soft.weights_b[row] : 0.0f),
        label_smoothing(soft.label_smoothing) {}
};

/// One row: returns its loss, says whether it is right, and replaces the logits by their gradient.
double reference_differentiate(std::span<double> x, const RowTarget& target, double scale, bool& right);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::softmax_cross_entropy

namespace gradring::kernels::linear_cross_entropy {

using softmax_cross_entropy::SoftTargets;

/// More classes than this are work for gemm and softmax_cross_entropy.
inline constexpr std::int64_t kMostClasses = 32;

/// The head of a classifier in one: linear layer, softmax, cross-entropy, and all their gradients.
///   x[r,c] = sum_i h[r,i] w[c,i] + b[c]        p, t, *loss_sum, *correct: of x, as in softmax_cross_entropy
///   d[r,c] = (p[r,c] - t[r,c]) * (scale * loss_scale)
///   dh[r,i] = sum_c d[r,c] w[c,i]        dw[c,i] = sum_r d[r,c] h[r,i]        db[c] = sum_r d[r,c]
/// With `accumulate`, dw and db are added to what they hold. With `h_is_relu`, h = max(z, 0), and dh is the gradient of
/// z: as relu backward has it, 0 where h is not above 0.
///
/// Shapes    h, dh: [rows, in]; w, dw: [classes, in]; b, db: [classes]; labels, labels_b, weights_b: [rows]; logits
///           (x): [rows, classes]; row-major, contiguous; rows >= 0, in >= 1, 1 <= classes <= kMostClasses.
/// Types     h, w, b, dh, logits: f32, f16 or bf16, all equal; dw, db, weights_b: f32; labels: i32; everything between
///           in f32.
/// Aliasing  nothing that is written overlaps anything else. logits may be null; so may dh, dw and db, all three, when
///           only the loss is wanted. loss_scale, loss_sum, correct and workspace are device memory; so is `arrivals`, a
///           word that is 0, and 0 again afterwards. With it and `partial_sums`, one launch may be enough; without
///           (null) another one adds up the loss.
/// Order     enqueued on the stream; returns at once. rows = 0: the results are 0, or stay where they accumulate.
/// Errors    InvalidArgument if an extent is outside the above, a pointer is null, soft targets are as
///           softmax_cross_entropy rejects them, or the type none of the three. A label outside [0, classes) or a
///           weight outside [0, 1] is found on the device only: its row's loss and dh are NaN, dw and db too, and it
///           counts as wrong.
/// Numerics  deterministic: extents and alignments decide the order of sums. With u = 2^-24: x is off by at most e =
///           (in + 8) u (sum_i |h w| + |b|); a row's loss by 2 e and what softmax_cross_entropy adds; d by E = (2 e + 2
///           (classes + 8) u) * scale * loss_scale; dh by sum_c |w| E + (classes + 2) u sum_c |d w|, and one rounding;
///           dw by sum_r |h| E + (rows / 64 + 66) u sum_r |d h|, db likewise with h = 1.
/// Cost      reads 2 rows * in and writes rows * in elements; 6 rows * in * classes floating-point operations.
/// Example   tests/kernels/ops/linear_cross_entropy_test.cpp
struct Args {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t classes = 0;
  const void* h = nullptr;
  const void* w = nullptr;
  const void* b = nullptr;
  const std::int32_t* labels = nullptr;
  SoftTargets soft = {};
  float scale = 1;
  const float* loss_scale = nullptr;  ///< what the device decides (StepState::loss_scale); null: 1
  void* logits = nullptr;
  void* dh = nullptr;
  bool h_is_relu = false;
  float* dw = nullptr;
  float* db = nullptr;
  bool accumulate = false;
  float* loss_sum = nullptr;
  std::int32_t* correct = nullptr;
  unsigned* arrivals = nullptr;
  void* workspace = nullptr;            ///< workspace_bytes(rows, in, classes) bytes, aligned to 16
  PartialSums* partial_sums = nullptr;  ///< of dw and db
};

/// Rows of a block of the variant that leaves partial sums of dw and db: as few as the block has warps, but for large
/// batches more, so that there are few sums.
inline constexpr std::int64_t kRowsOfBlock = 4;
inline constexpr std::int64_t kMostRowsOfBlock = 32;
inline constexpr std::int64_t kBlocksWanted = 128;  // about as many as a GPU has multiprocessors

constexpr std::int64_t rows_of_block(std::int64_t rows) {
  const std::int64_t turns = (rows + kBlocksWanted * kRowsOfBlock - 1) / (kBlocksWanted * kRowsOfBlock);
  return std::clamp(turns * kRowsOfBlock, kRowsOfBlock, kMostRowsOfBlock);
}
constexpr std::int64_t blocks_of(std::int64_t rows) { return (rows + rows_of_block(rows) - 1) / rows_of_block(rows); }

/// From a block's db to the next: whole vectors of four.
constexpr std::int64_t db_stride(std::int64_t classes) { return (classes + 3) / 4 * 4; }

/// Scratch memory of one call: d in f32, a loss and a verdict per row; or dw, db, loss and right rows per block. Never 0,
/// so that it can always be allocated.
constexpr std::size_t workspace_bytes(std::int64_t rows, std::int64_t in, std::int64_t classes) {
  const std::int64_t of_rows = rows * (classes + 2);
  const std::int64_t of_blocks = blocks_of(rows) * (classes * in + db_stride(classes) + 2);
  return static_cast<std::size_t>(std::max<std::int64_t>({of_rows, of_blocks, 1})) * sizeof(float);
}

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::linear_cross_entropy
