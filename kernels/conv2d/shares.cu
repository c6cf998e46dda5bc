// SPDX-License-Identifier: Apache-2.0
// Idea: the second stage of a long sum: what several blocks have added up apart is added up in order, without atomics,
//   so that every run gives the same bits. Where there are many shares, groups of them first, each into its first
//   member.
// Mapping: a thread per result and group, walking through the shares; then a thread per result.
// Traffic and bound: reads every share once, coalesced, from the cache that it was just written to; bound by latency, a
//   thread waits for one load after the other: 32, and then as many as there are groups.
// Still slow because: two launches for a few thousand numbers.

#include "kernels/conv2d/shares.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kGroup = 32;

__global__ void conv2d_group_shares_kernel(float* __restrict__ shares, int count, std::int64_t elements) {
  const auto width = static_cast<std::size_t>(elements);
  const std::int64_t groups = tiles_of(count, kGroup);
  for (std::size_t at : simt::grid_range(static_cast<std::size_t>(groups) * width)) {
    const std::size_t first = at / width * kGroup;
    const std::size_t left = static_cast<std::size_t>(count) - first;
    float* column = shares + first * width + at % width;
    float sum = 0;
    for (std::size_t s = 0; s < (left < kGroup ? left : kGroup); ++s) sum += column[s * width];
    *column = sum;
  }
}

/// Of every `step`-th share.
__global__ void conv2d_add_shares_kernel(const float* __restrict__ shares, int count, int step, std::int64_t elements,
                                         float* __restrict__ to, bool accumulate) {
  for (std::size_t i : simt::grid_range(static_cast<std::size_t>(elements))) {
    float sum = 0;
    for (int s = 0; s < count; s += step) sum += shares[static_cast<std::size_t>(s * elements) + i];
    to[i] = accumulate ? to[i] + sum : sum;
  }
}

}  // namespace

void add_shares(Stream& stream, float* shares, int count, std::int64_t elements, float* to, bool accumulate) {
  const int step = count > kGroup ? kGroup : 1;
  if (step > 1)
    simt::launch_flat<conv2d_group_shares_kernel>(
        stream, simt::grid_for(stream, static_cast<std::size_t>(tiles_of(count, kGroup) * elements)), shares, count,
        elements);
  simt::launch_flat<conv2d_add_shares_kernel>(stream, simt::grid_for(stream, static_cast<std::size_t>(elements)),
                                              shares, count, step, elements, to, accumulate);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
