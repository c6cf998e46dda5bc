// SPDX-License-Identifier: Apache-2.0
// Idea: the second half of a sum whose inner index several blocks have shared: without atomics, so that every run gives
//   the same bits.
// Mapping: a thread per element of C, walking through the shares.
// Traffic and bound: reads 4 bytes a share and element, coalesced, from the cache that they were just written to.
// Still slow because: one more launch.

#include "kernels/gemm/shares.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class T>
__global__ void gemm_add_shares_kernel(const float* __restrict__ shares, int count, SIMT_GRID_CONST(Output<T>) c) {
  const std::int64_t elements = std::int64_t{c.rows} * c.columns;
  for (std::size_t i : simt::grid_range(static_cast<std::size_t>(elements))) {
    const auto at = static_cast<std::int64_t>(i);
    float sum = 0;
    for (int share = 0; share < count; ++share) sum += shares[share * elements + at];
    c.put(at, sum);
  }
}

}  // namespace

template <class T>
void add_shares(Stream& stream, const float* shares, int count, const Output<T>& c) {
  const std::int64_t elements = std::int64_t{c.rows} * c.columns;
  simt::launch_flat<gemm_add_shares_kernel<T>>(stream, simt::grid_for(stream, static_cast<std::size_t>(elements)),
                                               shares, count, c);
}

template void add_shares(Stream&, const float*, int, const Output<__half>&);
template void add_shares(Stream&, const float*, int, const Output<__nv_bfloat16>&);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
