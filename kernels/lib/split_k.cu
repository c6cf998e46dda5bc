// SPDX-License-Identifier: Apache-2.0
// Mapping: each thread adds up one element of 32 slices, then one of the sums of 32. Loads coalesce, and hit the L2
//   cache that the slices were just written to.
#include "kernels/lib/split_k.h"

#include "kernels/lib/element.h"

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

template <class T>
__global__ void split_k_sum_kernel(const float* __restrict__ slices, int count, int step, std::int64_t elements,
                                   T* __restrict__ to, bool accumulate) {
  for (std::size_t i : simt::grid_range(static_cast<std::size_t>(elements))) {
    const float sum = sum_of_slices(slices, count, step, elements, i);
    to[i] = from_f32<T>(accumulate ? to_f32(to[i]) + sum : sum);
  }
}

}  // namespace

template <class T>
void sum_in_order(Stream& stream, const float* slices, int count, int step, std::int64_t elements, T* to,
                  bool accumulate) {
  simt::launch_flat<split_k_sum_kernel<T>>(stream, simt::grid_for(stream, static_cast<std::size_t>(elements)), slices,
                                           count, step, elements, to, accumulate);
}

template void sum_in_order(Stream&, const float*, int, int, std::int64_t, float*, bool);
template void sum_in_order(Stream&, const float*, int, int, std::int64_t, __half*, bool);
template void sum_in_order(Stream&, const float*, int, int, std::int64_t, __nv_bfloat16*, bool);

void sum_slices(Stream& stream, float* slices, int count, std::int64_t elements, float* to, bool accumulate) {
  const bool grouped = count > kGroup;
  if (grouped)
    simt::launch_flat<split_k_sum_groups_kernel>(
        stream, simt::grid_for(stream, static_cast<std::size_t>(ceil_div(count, kGroup) * elements)), slices, count,
        elements);
  sum_in_order(stream, slices, count, grouped ? kGroup : 1, elements, to, accumulate);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
