// SPDX-License-Identifier: Apache-2.0
// Mapping: on a GPU a block adds up 32 elements: a lane has an element, a warp 32 slices at a time, whose sums meet in
//   shared memory. Where that holds too few of them, and on a CPU, each thread adds up one element of 32 slices, and a
//   second kernel the sums of 32. Loads coalesce, and hit the L2 cache that the slices were just written to.
#include "kernels/lib/split_k.h"

#include <algorithm>
#include <limits>

#include "kernels/lib/element.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kGroup = 32;
constexpr int kMostGroups = 32;  // that a block keeps the sums of
constexpr int kMostWarps = 8;

/// The sums of both arrays; the first `first_blocks` blocks are those of the first.
__global__ void __launch_bounds__(32 * kMostWarps)
    split_k_sum_both_kernel(SIMT_GRID_CONST(Slices) first, SIMT_GRID_CONST(Slices) second, int first_blocks, int count,
                            bool accumulate) {
  SIMT_SHARED(float[kMostGroups][32], sums);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int block = static_cast<int>(blockIdx.x);
  const Slices& of = block < first_blocks ? first : second;
  const std::int64_t element = std::int64_t{block < first_blocks ? block : block - first_blocks} * 32 + lane;
  const bool exists = element < of.elements;
  const int groups = (count + kGroup - 1) / kGroup;
  for (int group = static_cast<int>(threadIdx.x) / 32; group < groups; group += static_cast<int>(blockDim.x) / 32) {
    const int begin = group * kGroup;
    const int left = count - begin < kGroup ? count - begin : kGroup;
    sums[group][lane] =
        exists ? sum_of_slices(of.slices + begin * of.elements, left, 1, of.elements, static_cast<std::size_t>(element))
               : 0.0f;
  }
  __syncthreads();  // the sums of all groups are there
  if (threadIdx.x >= 32 || !exists) return;
  float sum = 0;
  for (int group = 0; group < groups; ++group) sum += sums[group][lane];
  of.to[element] = accumulate ? of.to[element] + sum : sum;
}

/// Replaces the first slice of each group by the sum of the group.
__global__ void split_k_sum_groups_kernel(float* __restrict__ slices, int count, std::int64_t elements) {
  const auto width = static_cast<std::size_t>(elements);
  const std::int64_t groups = ceil_div(count, kGroup);
  for (std::size_t at : simt::grid_range(static_cast<std::size_t>(groups) * width)) {
    const std::size_t first = at / width * kGroup;
    const std::size_t left = static_cast<std::size_t>(count) - first;
    float* column = slices + first * width + at % width;
    float sum = 0;
    for (std::size_t slice = 0; slice < (left < kGroup ? left : kGroup); ++slice) sum += column[slice * width];
    *column = sum;
  }
}

__global__ void split_k_sum_kernel(const float* __restrict__ slices, int count, int step, std::int64_t elements,
                                   float* __restrict__ to, bool accumulate) {
  for (std::size_t i : simt::grid_range(static_cast<std::size_t>(elements))) {
    const float sum = sum_of_slices(slices, count, step, elements, i);
    to[i] = accumulate ? to[i] + sum : sum;
  }
}

void sum_by_threads(Stream& stream, int count, const Slices& of, bool accumulate) {
  const bool grouped = count > kGroup;
  if (grouped)
    simt::launch_flat<split_k_sum_groups_kernel>(
        stream, simt::grid_for(stream, static_cast<std::size_t>(ceil_div(count, kGroup) * of.elements)), of.slices,
        count, of.elements);
  simt::launch_flat<split_k_sum_kernel>(stream, simt::grid_for(stream, static_cast<std::size_t>(of.elements)),
                                        of.slices, count, grouped ? kGroup : 1, of.elements, of.to, accumulate);
}

}  // namespace

void sum_slices(Stream& stream, int count, const Slices& first, const Slices& second, bool accumulate,
                PartialSums* left) {
  if (left && !accumulate) {
    for (const Slices& of : {first, second})
      if (of.elements > 0)
        left->push_back(
            {.slices = of.slices, .count = count, .stride = of.elements, .elements = of.elements, .to = of.to});
    return;
  }
  const std::int64_t groups = ceil_div(count, kGroup);
  const std::int64_t first_blocks = ceil_div(first.elements, 32);
  const std::int64_t blocks = first_blocks + ceil_div(second.elements, 32);
  if (kCopyKind == DeviceKind::cpu || groups > kMostGroups || blocks > std::numeric_limits<int>::max()) {
    for (const Slices& of : {first, second})
      if (of.elements > 0) sum_by_threads(stream, count, of, accumulate);
    return;
  }
  const simt::Config config{.grid = dim3(static_cast<unsigned>(blocks)),
                            .block = dim3(static_cast<unsigned>(32 * std::clamp<std::int64_t>(groups, 1, kMostWarps)))};
  simt::launch<split_k_sum_both_kernel>(stream, config, first, second, static_cast<int>(first_blocks), count,
                                        accumulate);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
