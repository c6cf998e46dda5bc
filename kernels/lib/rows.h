// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/runtime/stream.h"
#include "kernels/simt/simt.h"

/// Loops over a matrix whose rows are contiguous: rows are distributed over the grid, the elements of a row over the
/// lanes of a warp. On a GPU a warp walks along a row, so its accesses coalesce; on a CPU one thread walks along all of
/// it, so its loop vectorises. No index is divided by the width.
///
///   for (std::int64_t row : lib::row_range(rows))
///     for (int col : lib::lane_range(cols)) y[row * cols + col] = ...;
///
/// launched with lib::rows_for(stream, rows, work), grid.y and grid.z free for the kernel's own use. No barriers
/// inside: threads take different numbers of turns.
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// `work` is the number of elements, or of multiplications where one element costs many: it decides how many threads
/// pay.
inline simt::Config rows_for(Stream& stream, std::int64_t rows, std::int64_t work) {
  // An empty sum is work, too: its result has to be written.
  simt::Config config = simt::grid_for(stream, static_cast<std::size_t>(std::max<std::int64_t>(work, 1)));
  const unsigned lanes = std::min(config.block.x, 32u);
  config.block = dim3(lanes, config.block.x / lanes);
  const std::int64_t most_blocks = (rows + config.block.y - 1) / config.block.y;
  config.grid.x = static_cast<unsigned>(std::min<std::int64_t>(config.grid.x, most_blocks));
  return config;
}

/// The contiguous part of [0, rows) of this warp (threads with equal blockIdx.x and threadIdx.y).
__device__ inline simt::Range<std::int64_t> row_range(std::int64_t rows) {
  const std::int64_t warps = std::int64_t{gridDim.x} * blockDim.y;
  const std::int64_t warp = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const std::int64_t each = (rows + warps - 1) / warps;
  const std::int64_t begin = warp * each < rows ? warp * each : rows;
  const std::int64_t end = rows - begin < each ? rows : begin + each;
  return {begin, end, 1};
}

/// The part of [0, cols) of this lane (threadIdx.x): strided on a GPU, contiguous on a CPU.
__device__ inline simt::Range<int> lane_range(int cols) {
  const int lanes = static_cast<int>(blockDim.x);
  const int lane = static_cast<int>(threadIdx.x);
#ifdef __CUDACC__
  return {lane, cols, lanes};
#else
  const int each = (cols + lanes - 1) / lanes;
  const int begin = lane * each < cols ? lane * each : cols;
  return {begin, cols - begin < each ? cols : begin + each, 1};
#endif
}

/// Adds up kWidth numbers over the threads of a block: sum j = values[j] of thread 0 + values[j] of thread 1 + ...
///
/// Algorithm   every thread stores its numbers in shared memory; thread j then adds column j from the first thread to
///             the last. One barrier: on a CPU barriers are what costs, on a GPU the kernels that use this run for
///             longer.
/// Result      visit(j, sum) is called for every j, by thread j modulo kThreads.
/// Limits      blockDim = (kThreads, 1, 1). Two calls with equal template arguments in one kernel need a
///             __syncthreads() between them: they share the table.
/// Numerics    deterministic, always in the same order.
template <int kThreads, class T, int kWidth, class Visit>
__device__ inline void block_sum(const T (&values)[kWidth], Visit visit) {
  using Table = T[kThreads][kWidth + 1];  // one more, so that the threads of a warp write to different banks
  SIMT_SHARED(Table, table);
  const int thread = static_cast<int>(threadIdx.x);
  for (int j = 0; j < kWidth; ++j) table[thread][j] = values[j];
  __syncthreads();  // column j holds what every thread wrote
  for (int j = thread; j < kWidth; j += kThreads) {
    T sum = 0;
    for (int i = 0; i < kThreads; ++i) sum += table[i][j];
    visit(j, sum);
  }
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
