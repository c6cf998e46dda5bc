// SPDX-License-Identifier: Apache-2.0
// Mapping: each thread adds up the slices of four neighbours of C in ascending order, from vectors of 16 bytes, and
//   stores them as the variants do: with bias, ReLU and what C held. Where rows are not whole fours, of one element.
//   blockIdx.y: the row.
// Traffic and bound: 4 bytes for each partial sum, which was just written to the L2 cache.
#include "kernels/ops/gemm/tiles.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kThreads = 64;

template <class T, int kCount>
__global__ void gemm_sum_slices_kernel(const float* __restrict__ slices, int count, SIMT_GRID_CONST(Output<T>) c) {
  const auto column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * kCount;
  if (column >= c.columns) return;
  const auto row = static_cast<int>(blockIdx.y);
  const std::int64_t elements = std::int64_t{c.rows} * c.columns;
  const float* from = slices + row * c.columns + column;  // of kBlocksWanted tiles at most
  float sums[kCount] = {};
  for (int slice = 0; slice < count; ++slice, from += elements) {
    float values[kCount];
    lib::load_channels(from, values);
    SIMT_UNROLL
    for (int j = 0; j < kCount; ++j) sums[j] += values[j];
  }
  c.row(row).put(column, sums);
}

}  // namespace

template <class T>
void sum_slices(Stream& stream, const float* slices, int count, const Output<T>& c) {
  lib::with_bool(c.columns % kFour == 0, [&](auto fours) {
    constexpr int kCount = fours.value ? kFour : 1;
    const simt::Config config{
        .grid = dim3(static_cast<unsigned>(lib::ceil_div(c.columns, kCount * kThreads)), static_cast<unsigned>(c.rows)),
        .block = dim3(kThreads)};
    simt::launch_flat<gemm_sum_slices_kernel<T, kCount>>(stream, config, slices, count, c);
  });
}

template void sum_slices(Stream&, const float*, int, const Output<float>&);
template void sum_slices(Stream&, const float*, int, const Output<__half>&);
template void sum_slices(Stream&, const float*, int, const Output<__nv_bfloat16>&);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
