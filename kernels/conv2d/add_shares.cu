// SPDX-License-Identifier: Apache-2.0
// Idea: the second stage of a long sum: what several blocks have added up apart is added up in order, without atomics, so
//   that every run gives the same bits.
// Mapping: a thread per result, walking through the shares.
// Traffic and bound: reads every share once, coalesced; bound by memory, or by the caches they were just written to.

#include "kernels/conv2d/shares.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

__global__ void conv2d_add_shares_kernel(const float* __restrict__ shares, int count, std::int64_t elements,
                                         float* __restrict__ to, bool accumulate) {
  for (std::size_t i : simt::grid_range(static_cast<std::size_t>(elements))) {
    float sum = 0;
    for (int s = 0; s < count; ++s) sum += shares[static_cast<std::size_t>(s * elements) + i];
    to[i] = accumulate ? to[i] + sum : sum;
  }
}

}  // namespace

void add_shares(Stream& stream, const float* shares, int count, std::int64_t elements, float* to, bool accumulate) {
  simt::launch_flat<conv2d_add_shares_kernel>(stream, simt::grid_for(stream, static_cast<std::size_t>(elements)),
                                              shares, count, elements, to, accumulate);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
