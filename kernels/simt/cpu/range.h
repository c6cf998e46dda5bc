// SPDX-License-Identifier: Apache-2.0
// On a CPU each thread takes one contiguous run of indices, so that its loop vectorises.
#pragma once

#include <cstddef>

#include "kernels/simt/cpu/index.h"
#include "kernels/simt/cpu/language.h"
#include "kernels/simt/range.h"

namespace gradring::simt {
namespace detail {

/// The share of thread `thread` of `threads` in [begin, end).
template <class Index>
Range<Index> run_of(Index begin, Index end, Index thread, Index threads) {
  const Index count = end > begin ? end - begin : 0;
  const Index each = count / threads + (count % threads != 0 ? 1 : 0);
  const Index first = each == 0 || thread < count / each + 1 ? begin + thread * each : end;
  const Index from = first < end ? first : end;
  const Index to = end - from > each ? from + each : end;
  return {from, to, 1};
}

}  // namespace detail

inline Range<std::size_t> grid_range(std::size_t count) {
  const std::size_t per_block = std::size_t{blockDim.x} * blockDim.y * blockDim.z;
  const std::size_t in_block =
      threadIdx.x + std::size_t{blockDim.x} * (threadIdx.y + std::size_t{blockDim.y} * threadIdx.z);
  const std::size_t block = blockIdx.x + std::size_t{gridDim.x} * (blockIdx.y + std::size_t{gridDim.y} * blockIdx.z);
  const std::size_t blocks = std::size_t{gridDim.x} * gridDim.y * gridDim.z;
  return detail::run_of<std::size_t>(0, count, block * per_block + in_block, blocks * per_block);
}

inline Range<unsigned> block_range(unsigned begin, unsigned end) {
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  return detail::run_of<unsigned>(begin, end, thread, threads);
}

}  // namespace gradring::simt
