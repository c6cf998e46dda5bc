// SPDX-License-Identifier: Apache-2.0
// Mapping: each thread adds up one element of 32 slices, then one of the sums of 32. Loads coalesce, and hit the L2
//   cache that the slices were just written to.
#include "kernels/lib/split_k.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kGroup = 32;

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

}  // namespace

void sum_slices(Stream& stream, float* slices, int count, std::int64_t elements, float* to, bool accumulate) {
  const bool grouped = count > kGroup;
  if (grouped)
    simt::launch_flat<split_k_sum_groups_kernel>(
        stream, simt::grid_for(stream, static_cast<std::size_t>(ceil_div(count, kGroup) * elements)), slices, count,
        elements);
  simt::launch_flat<split_k_sum_kernel>(stream, simt::grid_for(stream, static_cast<std::size_t>(elements)), slices,
                                        count, grouped ? kGroup : 1, elements, to, accumulate);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
