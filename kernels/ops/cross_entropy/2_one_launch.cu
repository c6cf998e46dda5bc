// SPDX-License-Identifier: Apache-2.0
// Idea: one launch. What is summed over rows is summed over the rows of a block, and left as partial sums, which the
//   caller adds up together with those of other layers; the block that ends last adds up the loss.
// Mapping: each block of 4 warps has 4 rows, of large batches up to 32. First a warp has a row: a lane has 16 bytes of
//   every 512 of it, then a class: sums of 16 classes over the lanes are taken together, and the softmax is a few
//   shuffles. Then, behind a barrier, a thread has 2 columns: of dh for 4 rows at a time, and of dw for all rows and
//   classes, in registers.
// Traffic and bound: reads h twice, the second time from the caches, and w once a block; writes dh, and dw once a block.
//   For hundreds of rows bound by latency: loads, 16 shuffles for the sums, 10 for the softmax, a barrier.
// Gains over the step before: one launch instead of two; a warp's accesses are whole lines of h, w, dh and dw; every w
//   that a thread loads serves 4 rows.
// Still slow because: every block writes a dw of its own; a cluster of blocks could add theirs up in shared memory.
// Limits: at most 32 classes; rows and in < 2^31. Columns that do not fill vectors, and more than 16 classes, are loaded
//   one by one. Complete sums, where the caller takes no partial ones, take a second launch.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/lib/channel_vector.h"
#include "kernels/lib/element.h"
#include "kernels/lib/last_block.h"
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
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kLanes;
[[maybe_unused]] constexpr int kBlocksOfMultiprocessor = 3;  // 168 registers: left alone, nvcc takes 128 and spills
constexpr int kAtOnce = 4;                                   // rows, and classes, that a thread multiplies at a time
constexpr int kSlots = 16;                                   // classes whose products a lane adds up at a time
static_assert(kMostRowsOfBlock % kAtOnce == 0 && kRowsOfBlock == kWarps && kRowsOfBlock == kAtOnce);

/// What each block leaves of its rows.
struct BlockSums {
  float* dw;  ///< [blocks, classes, in]
  float* db;  ///< [blocks, db_stride]
  float* losses;
  std::int32_t* correct;
  int blocks, rows_of_block, db_stride;

  explicit BlockSums(const Args& args)
      : dw(static_cast<float*>(args.workspace)),
        blocks(static_cast<int>(blocks_of(args.rows))),
        rows_of_block(static_cast<int>(linear_cross_entropy::rows_of_block(args.rows))),
        db_stride(static_cast<int>(linear_cross_entropy::db_stride(args.classes))) {
    db = dw + blocks * args.classes * args.in;
    losses = db + std::int64_t{blocks} * db_stride;
    correct = reinterpret_cast<std::int32_t*>(losses + blocks);
  }
};

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

/// The same bits in every lane.
__device__ inline float sum_over_warp(float value) {
  for (int other = kLanes / 2; other > 0; other /= 2) value += __shfl_xor_sync(kAll, value, other);
  return value;
}

struct RowResult {
  float loss = 0;
  std::int32_t right = 0;
};

/// One row, by one warp: x becomes d, and 0 beyond the last class.
template <int kWidth, bool kSoft, class T>
__device__ inline RowResult differentiate_row(const Problem<T>& p, unsigned row, float* x, int lane) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const bool has_class = lane < p.classes;
  const float b = has_class ? lib::to_f32(p.b[lane]) : 0.0f;
  const Target<kSoft> target(p.labels, p.soft, row, p.classes);
  const float scale = p.loss_scale ? p.scale * *p.loss_scale : p.scale;
  multiply_row<kWidth>(p, p.h + std::int64_t{row} * p.in, x, lane);
  __syncwarp();  // a class's logit is another lane's sum
  const float logit = has_class ? x[lane] + b : -kInfinity;
  if (has_class) x[lane] = logit;
  if (has_class && p.logits) p.logits[std::int64_t{row} * p.classes + lane] = lib::from_f32<T>(logit);
  float largest = logit;
  for (int other = kLanes / 2; other > 0; other /= 2) largest = max(largest, __shfl_xor_sync(kAll, largest, other));
  const int where = __ffs(static_cast<int>(__ballot_sync(kAll, has_class && logit == largest))) - 1;
  const float e = has_class ? expf(logit - largest) : 0.0f;
  const float sum = sum_over_warp(e);  // NaN if there is a NaN in the row
  __syncwarp();                        // the target's logit is another lane's
  const bool valid = target.valid(p.classes);
  const float loss = logf(sum) + (valid ? target.distance(x, p.classes, largest) : kNaN);
  const float d = target.gradient(lane, e / sum) * (valid ? scale : kNaN);
  __syncwarp();  // every lane has read the logits
  x[lane] = has_class ? d : 0.0f;
  return {.loss = loss, .right = where == target.prediction() && loss == loss};
}

using Table = float[kMostRowsOfBlock][kMostClasses];

/// kColumns neighbouring columns of dh for the block's rows, and of the block's dw.
template <int kColumns, int kClasses, class T>
__device__ inline void multiply_columns(const Problem<T>& p, const BlockSums& sums, const Table& d, unsigned first_row,
                                        int rows, int column) {
  float dw[kClasses][kColumns] = {};
  for (int group = 0; group < rows; group += kAtOnce) {
    const std::int64_t at = std::int64_t{first_row + static_cast<unsigned>(group)} * p.in + column;
    float h[kAtOnce][kColumns] = {}, dh[kAtOnce][kColumns] = {};
    SIMT_UNROLL
    for (int r = 0; r < kAtOnce; ++r)
      if (group + r < rows) lib::load_channels(p.h + at + std::int64_t{r} * p.in, h[r]);
    SIMT_UNROLL
    for (int first = 0; first < kClasses; first += kAtOnce) {
      if (first >= p.classes) break;
      float w[kAtOnce][kColumns] = {};
      SIMT_UNROLL
      for (int c = 0; c < kAtOnce; ++c)
        if (first + c < p.classes) lib::load_channels(p.w + std::int64_t{first + c} * p.in + column, w[c]);
      SIMT_UNROLL
      for (int r = 0; r < kAtOnce; ++r) {
        alignas(16) float of_row[kAtOnce];
        simt::store_as<float4>(of_row, simt::load_as<float4>(d[group + r] + first));
        SIMT_UNROLL
        for (int c = 0; c < kAtOnce; ++c) {
          SIMT_UNROLL
          for (int j = 0; j < kColumns; ++j) {
            dh[r][j] += of_row[c] * w[c][j];
            dw[first + c][j] += of_row[c] * h[r][j];
          }
        }
      }
    }
    SIMT_UNROLL
    for (int r = 0; r < kAtOnce; ++r) {
      if (group + r >= rows) break;
      SIMT_UNROLL
      for (int j = 0; j < kColumns; ++j) dh[r][j] = p.h_is_relu && !(h[r][j] > 0.0f) ? 0.0f : dh[r][j];
      lib::store_channels(p.dh + at + std::int64_t{r} * p.in, dh[r]);
    }
  }
  float* to = sums.dw + std::int64_t{blockIdx.x} * p.classes * p.in + column;
  SIMT_UNROLL
  for (int c = 0; c < kClasses; ++c, to += p.in)
    if (c < p.classes) lib::store_channels(to, dw[c]);
}

/// The loss of all blocks, by one warp, always in the same order.
template <class T>
__device__ inline void add_up_loss(const Problem<T>& p, const BlockSums& sums, int lane) {
  float loss = 0;
  std::int32_t right = 0;
  for (int block = lane; block < sums.blocks; block += kLanes) {
    loss += sums.losses[block];
    right += sums.correct[block];
  }
  loss = sum_over_warp(loss);
  for (int other = kLanes / 2; other > 0; other /= 2) right += __shfl_xor_sync(kAll, right, other);
  if (lane > 0) return;
  *p.loss_sum = loss;
  *p.correct = right;
}

/// `arrivals`: null if another launch adds up the loss.
template <class T, int kWidth, int kClasses, bool kSoft>
__global__ void __launch_bounds__(kThreads, kBlocksOfMultiprocessor)
    linear_cross_entropy_block_sums_kernel(SIMT_GRID_CONST(Problem<T>) p, SIMT_GRID_CONST(BlockSums) sums,
                                           unsigned* arrivals) {
  constexpr int kColumns = kWidth > 1 ? 2 : 1;
  using Results = RowResult[kMostRowsOfBlock];
  SIMT_SHARED(Table, table);  // the logits of a row, then d
  SIMT_SHARED(Results, results);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const unsigned first_row = blockIdx.x * static_cast<unsigned>(sums.rows_of_block);
  const int rows = p.rows - first_row < static_cast<unsigned>(sums.rows_of_block) ? static_cast<int>(p.rows - first_row)
                                                                                  : sums.rows_of_block;
  for (int row = warp; row < sums.rows_of_block; row += kWarps) {
    RowResult result;
    if (row < rows)
      result = differentiate_row<kWidth, kSoft>(p, first_row + static_cast<unsigned>(row), table[row], lane);
    else
      table[row][lane] = 0.0f;
    if (lane == 0) results[row] = result;
  }
  __syncthreads();  // every thread reads every row's d
  if (p.dh) {
    for (int column = static_cast<int>(threadIdx.x) * kColumns; column < p.in; column += kThreads * kColumns)
      multiply_columns<kColumns, kClasses>(p, sums, table, first_row, rows, column);
    if (warp == 0 && lane < p.classes) {
      float db = 0;
      for (int row = 0; row < rows; ++row) db += table[row][lane];
      sums.db[blockIdx.x * static_cast<unsigned>(sums.db_stride) + static_cast<unsigned>(lane)] = db;
    }
  }
  if (threadIdx.x == kThreads - kLanes) {
    RowResult total;
    for (int row = 0; row < rows; ++row) {
      total.loss += results[row].loss;
      total.right += results[row].right;
    }
    sums.losses[blockIdx.x] = total.loss;
    sums.correct[blockIdx.x] = total.right;
  }
  if (arrivals && lib::is_last_block(arrivals) && warp == 0) add_up_loss(p, sums, lane);
}

/// Adds up what the blocks left: 32 elements of dw, then of db, a block, and the loss in the last one.
template <class T>
__global__ void __launch_bounds__(kThreads)
    linear_cross_entropy_total_kernel(SIMT_GRID_CONST(Problem<T>) p, SIMT_GRID_CONST(BlockSums) sums) {
  SIMT_SHARED(float[kWarps][kLanes], of_warps);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  if (blockIdx.x + 1 == gridDim.x) {
    if (warp == 0) add_up_loss(p, sums, lane);
    return;
  }
  const std::int64_t of_dw = std::int64_t{p.classes} * p.in;
  const std::int64_t at = std::int64_t{blockIdx.x} * kLanes + lane;
  const bool exists = at < of_dw + p.classes;
  const bool is_dw = at < of_dw;
  const float* const from = is_dw ? sums.dw + at : sums.db + (at - of_dw);
  const std::int64_t stride = is_dw ? of_dw : sums.db_stride;
  float sum = 0;
  if (exists)
    for (int block = warp; block < sums.blocks; block += kWarps) sum += from[block * stride];
  of_warps[warp][lane] = sum;
  __syncthreads();  // the sums of all warps are there
  if (warp > 0 || !exists) return;
  for (int other = 1; other < kWarps; ++other) sum += of_warps[other][lane];
  float& to = is_dw ? p.dw[at] : p.db[at - of_dw];
  to = p.accumulate ? to + sum : sum;
}

template <class T>
void launch_blocks(Stream& stream, const Args& args, const Problem<T>& problem, const BlockSums& sums,
                   unsigned* arrivals) {
  const simt::Config config{.grid = dim3(static_cast<unsigned>(sums.blocks)), .block = dim3(kThreads)};
  lib::with_bool(args.soft.used(), [&](auto soft) {
    lib::with_channel_width<T>(args.in, {args.h, args.w, args.dh}, [&](auto width) {
      if constexpr (width.value > 1)
        if (args.classes <= 16)
          return simt::launch<linear_cross_entropy_block_sums_kernel<T, width.value, 16, soft.value>>(
              stream, config, problem, sums, arrivals);
      simt::launch<linear_cross_entropy_block_sums_kernel<T, 1, kMostClasses, soft.value>>(stream, config, problem,
                                                                                           sums, arrivals);
    });
  });
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  const bool leaves = args.dw && args.partial_sums && !args.accumulate && args.rows > 0;
  const bool has_sums = args.dw && !leaves;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem = problem_of<T>(args);
    const BlockSums sums(args);
    const bool one_launch = args.arrivals && !has_sums && args.rows > 0;
    if (args.rows > 0) launch_blocks(stream, args, problem, sums, one_launch ? args.arrivals : nullptr);
    if (one_launch) return;
    const std::int64_t elements = has_sums ? args.classes * (args.in + 1) : 0;
    const simt::Config config{.grid = dim3(static_cast<unsigned>(lib::strips(elements, kLanes)) + 1),
                              .block = dim3(kThreads)};
    simt::launch<linear_cross_entropy_total_kernel<T>>(stream, config, problem, sums);
  });
  if (!leaves) return;
  const BlockSums sums(args);
  const std::int64_t of_dw = args.classes * args.in;
  args.partial_sums->push_back(
      {.slices = sums.dw, .count = sums.blocks, .stride = of_dw, .elements = of_dw, .to = args.dw});
  args.partial_sums->push_back(
      {.slices = sums.db, .count = sums.blocks, .stride = sums.db_stride, .elements = args.classes, .to = args.db});
}

}  // namespace

// A CPU tests it in one type: it emulates every shuffle.
Variant one_launch() {
  return {"one_launch", run, lib::supports_cuda_floating, [](DType dtype) { return dtype == DType::f32; }};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::linear_cross_entropy
