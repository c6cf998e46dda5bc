// SPDX-License-Identifier: Apache-2.0
// Idea: a handful of classes is so narrow that the logits of a few rows fit into shared memory: product, softmax and
//   the gradient of the inputs need one launch. The gradients of the weights are sums over all rows, and rows are
//   combined only in a second launch, which also adds up the loss.
// Mapping: rows: a block per 8 rows; a thread per (row, class) for the logits, per row for the softmax, per row and
//   strip of 8 columns for dh. columns: a block per strip of 8 columns and 8 classes; each thread adds up its rows in
//   registers, then the block adds up its threads. One more column of blocks adds up db, the losses and the verdicts.
// Traffic and bound: reads h twice, writes dh once; what lies between is classes / in of that. For hundreds of rows
//   bound by the two launches, for many thousands by memory.
// Still slow because: in the rows launch a thread walks along a row alone, so its loads are whole sectors but not whole
//   lines; 8 threads do the softmax while the others wait; and h is read again, from L2 at best.
// Limits: at most 32 classes; rows and in < 2^31.

#include <cstdint>
#include <limits>

#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/lib/rows.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/ops/cross_entropy/linear_problem.h"
#include "kernels/ops/cross_entropy/targets.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::linear_cross_entropy {
inline namespace GRADRING_KERNEL_COPY {

using softmax_cross_entropy::Target;

struct RowVerdict {
  float loss;
  bool right;  ///< the first maximum is at the target's larger class
};

/// Softmax and cross-entropy of one row of logits in f32, by one thread: x[c] becomes (p[c] - t[c]) * scale.
/// All of it is NaN if the target is not valid or a logit is NaN.
template <bool kSoft>
__device__ inline RowVerdict replace_by_gradient(float* x, int classes, const Target<kSoft>& target, float scale) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const bool valid = target.valid(classes);
  float largest = x[0];
  int where = 0;
  for (int c = 1; c < classes; ++c) {
    where = x[c] > largest ? c : where;
    largest = x[c] > largest ? x[c] : largest;
  }
  const float to_target = valid ? target.distance(x, classes, largest) : kNaN;
  float sum = 0;  // NaN if there is a NaN in the row
  for (int c = 0; c < classes; ++c) {
    x[c] = expf(x[c] - largest);
    sum += x[c];
  }
  const float factor = valid ? scale : kNaN;
  for (int c = 0; c < classes; ++c) x[c] = target.gradient(c, x[c] / sum) * factor;
  const float loss = logf(sum) + to_target;
  return {.loss = loss, .right = where == target.prediction() && loss == loss};
}

namespace {

constexpr int kRows = 8;
constexpr unsigned kRowsThreads = 128;
constexpr int kStrip = 8;
constexpr int kClasses = 8;  // of one block of columns: kStrip * kClasses sums fit into registers
constexpr int kColumnsThreads = 64;

template <class T, bool kSoft>
__global__ void linear_cross_entropy_rows_kernel(SIMT_GRID_CONST(Problem<T>) p) {
  using Table = float[kRows][kMostClasses];
  SIMT_SHARED(Table, x);  // the logits of the block's rows, then d
  const unsigned first = blockIdx.x * kRows;
  const unsigned rows = p.rows - first < kRows ? p.rows - first : kRows;
  const auto classes = static_cast<unsigned>(p.classes);
  for (unsigned pair : simt::block_range(0, rows * classes)) {
    const unsigned row = pair / classes;
    const unsigned c = pair % classes;
    lib::Dots<1> dot;
    dot.add(p.h + std::int64_t{first + row} * p.in, p.w + std::int64_t{c} * p.in, p.in, 1, p.in);
    dot.for_each(1, [&](int, float sum) { x[row][c] = sum + lib::to_f32(p.b[c]); });
    if (p.logits) p.logits[std::int64_t{first + row} * p.classes + c] = lib::from_f32<T>(x[row][c]);
  }
  __syncthreads();  // a row's classes were computed by different threads
  const float scale = p.loss_scale ? p.scale * *p.loss_scale : p.scale;
  for (unsigned row : simt::block_range(0, rows)) {
    const Target<kSoft> target(p.labels, p.soft, first + row, p.classes);
    const RowVerdict verdict = replace_by_gradient(x[row], p.classes, target, scale);
    p.losses[first + row] = verdict.loss;
    p.verdicts[first + row] = verdict.right;
    for (int c = 0; c < p.classes; ++c) p.d[std::int64_t{first + row} * p.classes + c] = x[row][c];
  }
  if (!p.dh) return;
  __syncthreads();  // d is read by every thread
  const auto strips = static_cast<unsigned>(lib::strips(p.in, kStrip));
  for (unsigned item : simt::block_range(0, rows * strips)) {
    const unsigned row = item / strips;
    const unsigned strip = item % strips;
    const int width = lib::strip_width(p.in, strip, kStrip);
    const std::int64_t at = std::int64_t{strip} * kStrip;
    lib::Strip<kStrip> sums;
    for (int c = 0; c < p.classes; ++c) sums.add_product(x[row][c], p.w + std::int64_t{c} * p.in + at, width);
    const std::int64_t first_of_strip = std::int64_t{first + row} * p.in + at;
    const T* h = p.h + first_of_strip;
    T* dh = p.dh + first_of_strip;
    sums.for_each(width, [&](int j, float sum) {
      dh[j] = lib::from_f32<T>(p.h_is_relu && !(lib::to_f32(h[j]) > 0.0f) ? 0.0f : sum);
    });
  }
}

/// dw of one strip of columns and kClasses classes from `first_class` on.
template <class T>
__device__ inline void add_up_weights(const Problem<T>& p, unsigned strip, int first_class) {
  const int width = lib::strip_width(p.in, strip, kStrip);
  const std::int64_t at = std::int64_t{strip} * kStrip;
  lib::Strip<kStrip> strips[kClasses];
  for (unsigned row : simt::block_range(0, p.rows)) {
    const float* d = p.d + std::int64_t{row} * p.classes + first_class;
    const T* h = p.h + std::int64_t{row} * p.in + at;
    SIMT_UNROLL
    for (int c = 0; c < kClasses; ++c)
      if (first_class + c < p.classes) strips[c].add_product(d[c], h, width);
  }
  float sums[kClasses * kStrip];
  SIMT_UNROLL
  for (int c = 0; c < kClasses; ++c) strips[c].copy_to(sums + c * kStrip);
  lib::block_sum<kColumnsThreads>(sums, [&](int k, float sum) {
    const int c = first_class + k / kStrip;
    if (c >= p.classes || k % kStrip >= width) return;
    float& dw = p.dw[std::int64_t{c} * p.in + at + k % kStrip];
    dw = p.accumulate ? dw + sum : sum;
  });
}

template <class T>
__device__ inline void add_up_bias(const Problem<T>& p, int first_class) {
  float sums[kClasses] = {};
  for (unsigned row : simt::block_range(0, p.rows))
    for (int c = 0; c < kClasses; ++c)
      if (first_class + c < p.classes) sums[c] += p.d[std::int64_t{row} * p.classes + first_class + c];
  lib::block_sum<kColumnsThreads>(sums, [&](int k, float sum) {
    if (first_class + k >= p.classes) return;
    float& db = p.db[first_class + k];
    db = p.accumulate ? db + sum : sum;
  });
}

template <class T>
__device__ inline void add_up_loss(const Problem<T>& p) {
  float loss[1] = {};
  int right[1] = {};
  for (unsigned row : simt::block_range(0, p.rows)) {
    loss[0] += p.losses[row];
    right[0] += p.verdicts[row];
  }
  lib::block_sum<kColumnsThreads>(loss, [&](int, float sum) { *p.loss_sum = sum; });
  lib::block_sum<kColumnsThreads>(right, [&](int, int sum) { *p.correct = sum; });
}

/// Block (strip, chunk of classes); the last of x has db, and with the first chunk the loss.
template <class T>
__global__ void linear_cross_entropy_columns_kernel(SIMT_GRID_CONST(Problem<T>) p) {
  const int first_class = static_cast<int>(blockIdx.y) * kClasses;
  if (blockIdx.x + 1 < gridDim.x) return add_up_weights(p, blockIdx.x, first_class);
  if (p.db) add_up_bias(p, first_class);
  if (blockIdx.y == 0) add_up_loss(p);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  const unsigned strips = args.dw ? static_cast<unsigned>(lib::strips(args.in, kStrip)) : 0;
  const unsigned chunks = args.dw ? static_cast<unsigned>(lib::strips(args.classes, kClasses)) : 1;
  const simt::Config rows{.grid = dim3(static_cast<unsigned>((args.rows + kRows - 1) / kRows)),
                          .block = dim3(kRowsThreads)};
  const simt::Config columns{.grid = dim3(strips + 1, chunks), .block = dim3(kColumnsThreads)};
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem = problem_of<T>(args);
    lib::with_bool(args.soft.used(), [&](auto soft) {
      simt::launch<linear_cross_entropy_rows_kernel<T, soft.value>>(stream, rows, problem);
    });
    simt::launch<linear_cross_entropy_columns_kernel<T>>(stream, columns, problem);
  });
}

}  // namespace

Variant two_launches() { return {"two_launches", run, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::linear_cross_entropy
