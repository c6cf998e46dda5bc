// SPDX-License-Identifier: Apache-2.0
// Idea: for hundreds of rows both launches are bound by latency: by how many loads, barriers and additions wait for one
//   another. So threads are many, each has little to do, and asks for all that it needs at once.
// Mapping: rows: a warp per row, four rows a block; a lane has 16 bytes of every 512 of a row, then a class: sums of 16
//   classes over the lanes are taken together, and the softmax is a few shuffles. columns: a block per 4 columns and 8
//   classes; a thread has one class and every 64th row, eight of them at a time; the 64 partial sums of an element are
//   added up in two steps of eight. One more column of blocks adds up db, the losses and the verdicts.
// Traffic and bound: reads h twice, writes dh once; what lies between is classes / in of that. For hundreds of rows
//   bound by the two launches, for many thousands by memory.
// Gains over the step before: up to 16 bytes an access, whole lines of h, w and dh; every class of a row at once; no
//   barrier in the first launch, and 8 + 8 additions one after another in the second where there were 64.
// Still slow because: h is read again, from L2 at best; for many thousands of rows, several blocks of the second launch
//   should share them.
// Limits: at most 32 classes; rows and in < 2^31. Columns that do not fill vectors are loaded one by one.

#include <cstdint>
#include <limits>

#include "kernels/lib/channel_vector.h"
#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/ops/cross_entropy/linear_problem.h"
#include "kernels/ops/cross_entropy/targets.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::linear_cross_entropy {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using softmax_cross_entropy::Target;

constexpr unsigned kAll = ~0u;
constexpr int kLanes = 32;
constexpr int kRows = 4;    // of a block of the first launch: one a warp
constexpr int kSlots = 16;  // classes whose products a lane adds up at a time
constexpr int kThreads = lib::kCopyKind == DeviceKind::cuda ? 512 : 64;  // of a block of the second launch
constexpr int kColumns = 4;                                              // neighbouring columns, and
constexpr int kClasses = 8;                                              // that it adds up
constexpr unsigned kStep = kThreads / kClasses;                          // from a row of a thread to its next
constexpr int kAtOnce = 8;                                               // rows whose loads a thread has in flight

/// Neighbouring elements in one access; if they are not `there`, nobody may ask for them. Converted later: what stands
/// between loads delays them.
template <int kWidth, class T>
class Loaded {
 public:
  __device__ void load(const T* from, bool there) {
    if (there)
      word_ = simt::load_as<Word>(from);
    else if constexpr (lib::kCopyKind == DeviceKind::cpu)
      word_ = {};  // for compilers that warn; nvcc would load fewer at once
  }
  __device__ void to_f32(float (&values)[kWidth]) const {
    lib::ChannelVector<T, kWidth> elements;
    simt::store_as<Word>(elements.values, word_);
    SIMT_UNROLL
    for (int j = 0; j < kWidth; ++j) values[j] = lib::to_f32(elements.values[j]);
  }

 private:
  using Word = lib::VectorWord<T, kWidth>;
  static_assert(sizeof(Word) == kWidth * sizeof(T));
  Word word_;
};

/// sums[i] over the lanes of the warp, in lanes 2 i and 2 i + 1. In each step a lane keeps half of its sums, adds to it
/// what its partner has of that half, and leaves the other half to the partner: 16 shuffles for 16 sums.
template <int kSums>
__device__ inline float sum_over_lanes(const float (&sums)[kSums], int lane) {
  if constexpr (kSums == 1) {
    return sums[0] + __shfl_xor_sync(kAll, sums[0], 1);
  } else {
    constexpr int kHalf = kSums / 2;
    const bool upper = (lane & kSums) != 0;
    float kept[kHalf];
    SIMT_UNROLL
    for (int i = 0; i < kHalf; ++i) {
      const float others = upper ? sums[i] : sums[i + kHalf];
      kept[i] = (upper ? sums[i + kHalf] : sums[i]) + __shfl_xor_sync(kAll, others, kSums);
    }
    return sum_over_lanes(kept, lane);
  }
}

/// x[c] = h . w[c] for every class, by one warp.
template <int kWidth, class T>
__device__ inline void multiply_row(const Problem<T>& p, const T* h_row, float* x, int lane) {
  for (int first = 0; first < p.classes; first += kSlots) {
    float sums[kSlots] = {};
    for (int at = lane * kWidth; at < p.in; at += kLanes * kWidth) {
      Loaded<kWidth, T> h_loaded, w_loaded[kSlots];
      h_loaded.load(h_row + at, true);
      const T* w_at = p.w + std::int64_t{first} * p.in + at;
      SIMT_UNROLL
      for (int i = 0; i < kSlots; ++i, w_at += p.in) w_loaded[i].load(w_at, first + i < p.classes);
      float h[kWidth], w[kWidth];
      h_loaded.to_f32(h);
      SIMT_UNROLL
      for (int i = 0; i < kSlots; ++i) {
        if (first + i >= p.classes) continue;
        w_loaded[i].to_f32(w);
        SIMT_UNROLL
        for (int j = 0; j < kWidth; ++j) sums[i] += h[j] * w[j];
      }
    }
    const float sum = sum_over_lanes(sums, lane);
    if (lane % 2 == 0) x[first + lane / 2] = sum;
  }
}

template <class T, int kWidth, bool kSoft>
__global__ void linear_cross_entropy_rows_warp_kernel(SIMT_GRID_CONST(Problem<T>) p) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  using Table = float[kRows][kMostClasses];
  SIMT_SHARED(Table, table);  // the logits of a row, then d
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const unsigned warp = threadIdx.x / kLanes;
  const unsigned row = blockIdx.x * kRows + warp;
  if (row >= p.rows) return;
  float* const x = table[warp];
  const bool has_class = lane < p.classes;
  const float b = has_class ? lib::to_f32(p.b[lane]) : 0.0f;
  const Target<kSoft> target(p.labels, p.soft, row, p.classes);
  const float scale = p.loss_scale ? p.scale * *p.loss_scale : p.scale;
  const std::int64_t row_begin = std::int64_t{row} * p.in;

  multiply_row<kWidth>(p, p.h + row_begin, x, lane);
  __syncwarp();  // a class's logit is another lane's sum
  const float logit = has_class ? x[lane] + b : -kInfinity;
  if (has_class) x[lane] = logit;
  if (has_class && p.logits) p.logits[std::int64_t{row} * p.classes + lane] = lib::from_f32<T>(logit);
  float largest = logit;
  for (int other = kLanes / 2; other > 0; other /= 2) largest = max(largest, __shfl_xor_sync(kAll, largest, other));
  const int where = __ffs(static_cast<int>(__ballot_sync(kAll, has_class && logit == largest))) - 1;
  const float e = has_class ? expf(logit - largest) : 0.0f;
  float sum = e;  // NaN if there is a NaN in the row
  for (int other = kLanes / 2; other > 0; other /= 2) sum += __shfl_xor_sync(kAll, sum, other);
  __syncwarp();  // the target's logit is another lane's
  const bool valid = target.valid(p.classes);
  const float loss = logf(sum) + (valid ? target.distance(x, p.classes, largest) : kNaN);
  const float d = target.gradient(lane, e / sum) * (valid ? scale : kNaN);
  if (has_class) p.d[std::int64_t{row} * p.classes + lane] = d;
  if (lane == 0) {
    p.losses[row] = loss;
    p.verdicts[row] = where == target.prediction() && loss == loss;
  }
  if (!p.dh) return;
  __syncwarp();  // every lane has read the logits
  x[lane] = d;
  __syncwarp();  // every lane reads every d
  for (int at = lane * kWidth; at < p.in; at += kLanes * kWidth) {
    float sums[kWidth] = {};
    for (int c = 0; c < p.classes; ++c) {
      float w[kWidth];
      lib::load_channels(p.w + std::int64_t{c} * p.in + at, w);
      SIMT_UNROLL
      for (int j = 0; j < kWidth; ++j) sums[j] += x[c] * w[j];
    }
    if (p.h_is_relu) {
      float h[kWidth];
      lib::load_channels(p.h + row_begin + at, h);
      SIMT_UNROLL
      for (int j = 0; j < kWidth; ++j) sums[j] = h[j] > 0.0f ? sums[j] : 0.0f;
    }
    lib::store_channels(p.dh + row_begin + at, sums);
  }
}

/// Adds up sums[j] of the threads t with the same t % kSets, in groups of which each adds up in ascending order, then
/// over the groups: visit(t % kSets, j, sum).
template <int kSets, int kWidth, class Visit>
__device__ inline void sum_over_threads(const float (&sums)[kWidth], Visit visit) {
  constexpr int kOf = kThreads / kSets;                   // threads that have a share in one sum
  constexpr int kGroups = kOf > 64 ? 32 : kThreads / 64;  // and groups of them
  constexpr int kSums = kSets * kWidth;
  static_assert(kOf % kGroups == 0 && kSums * kGroups <= kThreads);
  using Table = float[kWidth][kThreads + kClasses];  // rows kClasses banks apart
  using Groups = float[kGroups][kSums];
  SIMT_SHARED(Table, table);
  SIMT_SHARED(Groups, groups);
  const int thread = static_cast<int>(threadIdx.x);
  SIMT_UNROLL
  for (int j = 0; j < kWidth; ++j) table[j][thread] = sums[j];
  __syncthreads();  // a sum is over what many threads wrote
  const int i = thread % kSums;
  const int group = thread / kSums;
  if (group < kGroups) {
    const float* const column = &table[i / kSets][group * (kThreads / kGroups) + i % kSets];
    float sum = 0;
    SIMT_UNROLL
    for (int k = 0; k < kOf / kGroups; ++k) sum += column[k * kSets];
    groups[group][i] = sum;
  }
  __syncthreads();  // of the groups, too
  if (thread >= kSums) return;
  float sum = 0;
  SIMT_UNROLL
  for (int k = 0; k < kGroups; ++k) sum += groups[k][thread];
  visit(thread % kSets, thread / kSets, sum);
}

/// The class that this thread adds up; beyond the last class the last again, whose sum is not used.
template <class T>
__device__ inline int class_of_thread(const Problem<T>& p, int first_class) {
  const int mine = first_class + static_cast<int>(threadIdx.x) % kClasses;
  return mine < p.classes ? mine : p.classes - 1;
}

/// dw of the columns from `at` on, and of the classes from `first_class` on.
template <int kWidth, class T>
__device__ inline void add_up_weights(const Problem<T>& p, int at, int first_class) {
  const unsigned first = threadIdx.x / kClasses;
  const std::int64_t d_step = std::int64_t{kStep} * p.classes;
  const std::int64_t h_step = std::int64_t{kStep} * p.in;
  const float* d_at = p.d + std::int64_t{first} * p.classes + class_of_thread(p, first_class);
  const T* h_at = p.h + std::int64_t{first} * p.in + at;
  float sums[kWidth] = {};
  for (unsigned row = first; row < p.rows; row += kAtOnce * kStep) {
    Loaded<1, float> d_loaded[kAtOnce];
    Loaded<kWidth, T> h_loaded[kAtOnce];
    SIMT_UNROLL
    for (int i = 0; i < kAtOnce; ++i, d_at += d_step, h_at += h_step) {
      d_loaded[i].load(d_at, row + i * kStep < p.rows);
      h_loaded[i].load(h_at, row + i * kStep < p.rows);
    }
    SIMT_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      if (row + i * kStep >= p.rows) continue;
      float d[1], h[kWidth];
      d_loaded[i].to_f32(d);
      h_loaded[i].to_f32(h);
      SIMT_UNROLL
      for (int j = 0; j < kWidth; ++j) sums[j] += d[0] * h[j];
    }
  }
  sum_over_threads<kClasses>(sums, [&](int c, int j, float sum) {
    if (first_class + c >= p.classes) return;
    float& dw = p.dw[std::int64_t{first_class + c} * p.in + at + j];
    dw = p.accumulate ? dw + sum : sum;
  });
}

template <class T>
__device__ inline void add_up_bias(const Problem<T>& p, int first_class) {
  const int mine = class_of_thread(p, first_class);
  float sums[1] = {};
  SIMT_UNROLL
  for (unsigned row = threadIdx.x / kClasses; row < p.rows; row += kStep)
    sums[0] += p.d[std::int64_t{row} * p.classes + mine];
  sum_over_threads<kClasses>(sums, [&](int c, int, float sum) {
    if (first_class + c >= p.classes) return;
    float& db = p.db[first_class + c];
    db = p.accumulate ? db + sum : sum;
  });
}

template <class T>
__device__ inline void add_up_loss(const Problem<T>& p) {
  float loss[1] = {};
  int right = 0;
  for (unsigned first = 0; first < p.rows; first += kThreads) {
    const unsigned row = first + threadIdx.x;
    if (row < p.rows) loss[0] += p.losses[row];
    right += __syncthreads_count(row < p.rows && p.verdicts[row] != 0);
  }
  sum_over_threads<1>(loss, [&](int, int, float sum) {
    *p.loss_sum = sum;
    *p.correct = right;
  });
}

/// Block (columns, chunk of classes); the last of x has db, and with the first chunk the loss.
template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads) linear_cross_entropy_columns_groups_kernel(SIMT_GRID_CONST(Problem<T>) p) {
  const int first_class = static_cast<int>(blockIdx.y) * kClasses;
  if (blockIdx.x + 1 < gridDim.x) return add_up_weights<kWidth>(p, static_cast<int>(blockIdx.x) * kWidth, first_class);
  if (blockIdx.y == 0) add_up_loss(p);
  if (p.db) add_up_bias(p, first_class);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  const simt::Config rows{.grid = dim3(static_cast<unsigned>(lib::strips(args.rows, kRows))),
                          .block = dim3(kRows * kLanes)};
  const int chunks = args.dw ? lib::strips(args.classes, kClasses) : 1;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem = problem_of<T>(args);
    lib::with_channel_width<T>(args.in, {args.h, args.w, args.dh}, [&](auto width) {
      constexpr int kWidth = width.value < kColumns ? width.value : kColumns;
      const int strips = args.dw ? lib::strips(args.in, kWidth) : 0;
      const simt::Config columns{.grid = dim3(static_cast<unsigned>(strips) + 1, static_cast<unsigned>(chunks)),
                                 .block = dim3(kThreads)};
      lib::with_bool(args.soft.used(), [&](auto soft) {
        simt::launch<linear_cross_entropy_rows_warp_kernel<T, width.value, soft.value>>(stream, rows, problem);
      });
      simt::launch<linear_cross_entropy_columns_groups_kernel<T, kWidth>>(stream, columns, problem);
    });
  });
}

}  // namespace

// A CPU tests it in one type, and with fewer threads: it emulates every shuffle.
Variant warp_per_row() {
  return {"warp_per_row", run, lib::supports_cuda_floating, [](DType dtype) { return dtype == DType::f32; }};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::linear_cross_entropy
