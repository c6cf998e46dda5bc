// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/runtime/stream.h"
#include "kernels/simt/simt.h"

/// Loops over a matrix whose rows are contiguous: rows are shared out over the grid, the elements of a row over the lanes
/// of a warp. On a GPU a warp walks along a row, so its accesses coalesce; on a CPU one thread walks along all of it, so
/// its loop vectorises. Nobody divides an index by the width.
///
///   for (std::int64_t row : lib::row_range(rows))
///     for (int col : lib::lane_range(cols)) y[row * cols + col] = ...;
///
/// launched with lib::rows_for(stream, rows, work), grid.y and grid.z free for the kernel's own use. No barriers inside:
/// threads take different numbers of turns.
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// `work` is the number of elements, or of multiplications where one element costs many: it decides how many threads pay.
inline simt::Config rows_for(Stream& stream, std::int64_t rows, std::int64_t work) {
  // An empty sum is work, too: its result has to be written.
  simt::Config config = simt::grid_for(stream, static_cast<std::size_t>(std::max<std::int64_t>(work, 1)));
  const unsigned lanes = std::min(config.block.x, 32u);
  config.block = dim3(lanes, config.block.x / lanes);
  const std::int64_t most_blocks = (rows + config.block.y - 1) / config.block.y;
  config.grid.x = static_cast<unsigned>(std::min<std::int64_t>(config.grid.x, most_blocks));
  return config;
}

/// The run of [0, rows) that belongs to this warp (threads with equal blockIdx.x and threadIdx.y).
__device__ inline simt::Range<std::int64_t> row_range(std::int64_t rows) {
  const std::int64_t warps = std::int64_t{gridDim.x} * blockDim.y;
  const std::int64_t warp = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const std::int64_t each = (rows + warps - 1) / warps;
  const std::int64_t begin = warp * each < rows ? warp * each : rows;
  const std::int64_t end = rows - begin < each ? rows : begin + each;
  return {begin, end, 1};
}

/// The share of [0, cols) that belongs to this lane (threadIdx.x): strided on a GPU, contiguous on a CPU.
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

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
