// SPDX-License-Identifier: Apache-2.0
// Idea: multiply-adds in f32 and nothing else: all operands are in registers.
// Mapping: a warp a tile; a thread two rows by two columns of it, as a tensor core would lay them out.
// Traffic and bound: 1 KB a tile against 4096 operations a round; bound by the units that multiply and add.
// Still slow because: in 16 bits tensor cores do far more.

#include "kernels/lib/element.h"
#include "kernels/peak/peak.h"
#include "kernels/peak/tile.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::peak {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class T>
__global__ void __launch_bounds__(kThreads)
    peak_multiply_adds_kernel(const T* a, const T* b, float* y, std::int64_t tiles, std::int64_t rounds) {
  constexpr int kDepth = static_cast<int>(kInner);
  const std::int64_t tile = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (tile >= tiles) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const simt::Place first = simt::mma_place_in_c(lane, 0);
  const simt::Place last = simt::mma_place_in_c(lane, kResults - 1);
  float rows[2][kDepth], columns[2][kDepth];
  SIMT_UNROLL
  for (int k = 0; k < kDepth; ++k) {
    rows[0][k] = lib::to_f32(a[first.row * kDepth + k]);
    rows[1][k] = lib::to_f32(a[last.row * kDepth + k]);
    columns[0][k] = lib::to_f32(b[k * static_cast<int>(kColumns) + first.column]);
    columns[1][k] = lib::to_f32(b[k * static_cast<int>(kColumns) + last.column]);
  }
  const LaneOfTile lane_of_tile(y, tile, lane);
  float results[kResults];
  lane_of_tile.load(results);
  for (std::int64_t round = 0; round < rounds; ++round) {
    SIMT_UNROLL
    for (int k = 0; k < kDepth; ++k) {
      SIMT_UNROLL
      for (int i = 0; i < kResults; ++i) results[i] = __fmaf_rn(rows[i / 2][k], columns[i % 2][k], results[i]);
    }
  }
  lane_of_tile.store(results);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<peak_multiply_adds_kernel<T>>(stream, config_for(args.tiles), static_cast<const T*>(args.a),
                                                    static_cast<const T*>(args.b), args.y, args.tiles, args.rounds);
  });
}

}  // namespace

Variant multiply_adds() { return {.name = "multiply_adds", .run = run, .supports = lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::peak
