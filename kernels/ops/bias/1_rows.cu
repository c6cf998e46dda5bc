// SPDX-License-Identifier: Apache-2.0
// Idea: NHWC keeps the channels of a position together, so a row of the matrix [positions, channels] needs the same
//   bias in the same order; the gradient is the sum of the columns.
// Mapping: add: a warp walks along a row. grad: a block per strip of neighbouring channels, on a GPU 8 and 512 threads:
//   each adds up every 512th row, four loads of 16 bytes in flight, then the block adds up its threads by eights. On a
//   CPU a strip is 32 channels, and each of 8 threads adds up rows in one piece, in two chains of vectors.
// Traffic and bound: add reads and writes each element once; grad reads each once; both bound by memory.
// Still slow because: grad has one block per strip, too few for a large GPU, where each then is bound by what one
//   multiprocessor can read: rows must be split over blocks, and added up in a second stage, which needs a workspace.

#include "kernels/ops/bias/bias.h"

#include "kernels/lib/channel_vector.h"
#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/lib/rows.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::bias {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr bool kOnGpu = lib::kCopyKind == DeviceKind::cuda;
constexpr int kStrip = kOnGpu ? 8 : 32;
constexpr unsigned kGradThreads = kOnGpu ? 512 : 8;
constexpr unsigned kBatch = kOnGpu ? 4 : 64;  // rows that a thread adds up before it adds them to the others
constexpr unsigned kChains = kOnGpu ? 1 : 2;  // and additions that do not wait for each other
constexpr int kEight = 8;

template <class T>
__global__ void bias_add_rows_kernel(const T* x, const T* __restrict__ bias, T* y, std::int64_t rows, int channels) {
  for (std::int64_t row : lib::row_range(rows)) {
    const T* x_row = x + row * channels;
    T* y_row = y + row * channels;
    for (int c : lib::lane_range(channels)) y_row[c] = lib::from_f32<T>(lib::to_f32(x_row[c]) + lib::to_f32(bias[c]));
  }
}

/// Sums of a strip of columns.
struct StripSums {
  static constexpr int kParts = kStrip / lib::kLanes;
  lib::Lanes parts[kParts] = {};

  /// `width` elements from `row` on; in one access if kWide.
  template <bool kWide, class T>
  __device__ void add(const T* row, int width) {
    if constexpr (kWide) {
      float v[lib::kLanes];
      lib::load_channels(row, v);
      lib::add(parts[0], lib::Lanes{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]});
    } else {
      SIMT_UNROLL
      for (int p = 0; p < kParts; ++p)
        if (p * lib::kLanes < width)
          lib::add(parts[p], lib::load_lanes(row + p * lib::kLanes, width - p * lib::kLanes));
    }
  }
  __device__ void add(const StripSums& other) {
    SIMT_UNROLL
    for (int p = 0; p < kParts; ++p) lib::add(parts[p], other.parts[p]);
  }
};

/// Replaces the sums of each thread, in a column of `table` for each, by their sum over the block in the first column:
/// in each round a thread adds up eight, always the same.
__device__ inline void sum_over_threads(float (&table)[kStrip][kGradThreads]) {
  for (unsigned columns = kGradThreads / kEight; columns > 0; columns /= kEight) {
    __syncthreads();  // of what other threads wrote
    for (unsigned at = threadIdx.x; at < kStrip * columns; at += kGradThreads) {
      float* const row = table[at / columns] + at % columns;
      float sum = 0;
      SIMT_UNROLL
      for (int i = 0; i < kEight; ++i) sum += row[i * columns];
      *row = sum;  // in place: nobody else reads these eight in this round
    }
  }
  __syncthreads();  // so that any thread may read them
}

template <bool kWide, class T>
__global__ void __launch_bounds__(kGradThreads) bias_grad_rows_kernel(const T* __restrict__ dy, float* __restrict__ db,
                                                                      unsigned rows, int channels, bool accumulate) {
  using Table = float[kStrip][kGradThreads];
  SIMT_SHARED(Table, table);
  const int first = static_cast<int>(blockIdx.x) * kStrip;
  const int width = lib::strip_width(channels, blockIdx.x, kStrip);
  const T* const strip = dy + first;
  const auto row_at = [&](unsigned row) { return strip + std::int64_t{row} * channels; };
  constexpr unsigned kStep = kOnGpu ? kGradThreads : 1;  // from a row of this thread to its next
  const unsigned each = rows / kGradThreads + 1;
  const unsigned begin = kOnGpu ? threadIdx.x : threadIdx.x * each;
  const unsigned end = kOnGpu || rows < begin + each ? rows : begin + each;
  StripSums sums;
  unsigned row = begin;
  for (; row < end && (end - 1 - row) / kStep >= kBatch - 1; row += kBatch * kStep) {
    StripSums chains[kChains];
    for (unsigned i = 0; i < kBatch; i += kChains)
      for (unsigned chain = 0; chain < kChains; ++chain)
        chains[chain].add<kWide>(row_at(row + (i + chain) * kStep), width);
    for (const StripSums& chain : chains) sums.add(chain);
  }
  for (; row < end; row += kStep) sums.add<kWide>(row_at(row), width);
  for (int j = 0; j < kStrip; ++j) table[j][threadIdx.x] = sums.parts[j / lib::kLanes][j % lib::kLanes];
  sum_over_threads(table);
  for (int j = static_cast<int>(threadIdx.x); j < width; j += kGradThreads)
    db[first + j] = accumulate ? db[first + j] + table[j][0] : table[j][0];
}

void add(Stream& stream, const AddArgs& args) {
  check_args(args);
  if (args.rows == 0 || args.channels == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<bias_add_rows_kernel<T>>(stream, lib::rows_for(stream, args.rows, args.rows * args.channels),
                                               static_cast<const T*>(args.x), static_cast<const T*>(args.bias),
                                               static_cast<T*>(args.y), args.rows,
                                               lib::narrow<int>("bias add", "channels", args.channels));
  });
}

void grad(Stream& stream, const GradArgs& args) {
  check_args(args);
  const simt::Config config{.grid = dim3(static_cast<unsigned>(lib::strips(args.channels, kStrip))),
                            .block = dim3(kGradThreads)};
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    lib::with_bool(kOnGpu && lib::fit_vectors<T, lib::kLanes>(args.channels, {args.dy}), [&](auto wide) {
      simt::launch<bias_grad_rows_kernel<wide.value, T>>(stream, config, static_cast<const T*>(args.dy), args.db,
                                                         lib::narrow<unsigned>("bias grad", "rows", args.rows),
                                                         lib::narrow<int>("bias grad", "channels", args.channels),
                                                         args.accumulate);
    });
  });
}

}  // namespace

Variant rows() { return {"rows", add, grad, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::bias
