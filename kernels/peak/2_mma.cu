// SPDX-License-Identifier: Apache-2.0
// Idea: the same on tensor cores, by mma.sync: a tile is one instruction.
// Mapping: a warp a tile; which lane holds what: simt/mma_layout.h.
// Traffic and bound: as the step before; bound by the tensor cores, as far as mma.sync reaches them.
// Gains over the step before: 2048 multiply-adds an instruction and warp instead of 32.
// Still slow because: on sm_90 wgmma, which reads its operands from shared memory, does more; what is measured here is
//   the peak of kernels that use mma.sync.
// Limits: f16 and bf16.

#include <cstring>

#include "kernels/lib/element.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/peak/peak.h"
#include "kernels/peak/tile.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::peak {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class T>
__device__ inline std::uint32_t pair_of(T low, T high) {
  const T both[2] = {low, high};
  std::uint32_t pair = 0;
  std::memcpy(&pair, both, sizeof pair);
  return pair;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    peak_mma_kernel(const T* a, const T* b, float* y, std::int64_t tiles, std::int64_t rounds) {
  const std::int64_t tile = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (tile >= tiles) return;  // all lanes of a warp or none
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto of_a = [&](int i) {
    const simt::Place place = simt::mma_place_in_a(lane, i);
    return a[place.row * static_cast<int>(kInner) + place.column];
  };
  const auto of_b = [&](int i) {
    const simt::Place place = simt::mma_place_in_b(lane, i);
    return b[place.row * static_cast<int>(kColumns) + place.column];
  };
  std::uint32_t left[4];
  SIMT_UNROLL
  for (int i = 0; i < 4; ++i) left[i] = pair_of(of_a(2 * i), of_a(2 * i + 1));
  const std::uint32_t right[2] = {pair_of(of_b(0), of_b(1)), pair_of(of_b(2), of_b(3))};
  const LaneOfTile lane_of_tile(y, tile, lane);
  float results[kResults];
  lane_of_tile.load(results);
  for (std::int64_t round = 0; round < rounds; ++round) lib::mma_m16n8k16<T>(results, left, right[0], right[1]);
  lane_of_tile.store(results);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch<peak_mma_kernel<T>>(stream, config_for(args.tiles), static_cast<const T*>(args.a),
                                     static_cast<const T*>(args.b), args.y, args.tiles, args.rounds);
  });
}

}  // namespace

Variant mma() { return {.name = "mma", .run = run, .supports = lib::supports_cuda_half, .computes = lib::is_half}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::peak
