// SPDX-License-Identifier: Apache-2.0
// Idea: Hopper's tensor cores at their own rate: four warps together start products of 64 x 128 x 16, whose operands
//   are in shared memory, and do not wait for one before they start the next.
// Mapping: each warpgroup computes 4 x 16 tiles; so a is in operand A four times, and b in operand B sixteen times. Two
//   warpgroups a block use the same operands.
// Traffic and bound: 1 KB a tile against 4096 operations a round. A product reads 6 KB of shared memory in 64 cycles,
//   three quarters of what it can give: bound by the tensor cores.
// Gains over the step before: mma.sync cannot keep these tensor cores busy.
// Still slow because: a product of 64 x 256 would read a sixth less; clocks fall with the power that this draws.
// Limits: compute capability 9.0 alone; f16 and bf16.

#include "kernels/lib/element.h"
#include "kernels/lib/warpgroup_mma.h"
#include "kernels/ops/peak/peak.h"
#include "kernels/simt/engine/tensor_layout.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::peak {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kGroupThreads = 128;
constexpr int kGroups = 2;  // of a block
constexpr int kGroupRows = 64;
constexpr int kGroupColumns = 128;
constexpr int kRowTiles = kGroupRows / static_cast<int>(kRows);
constexpr int kColumnTiles = kGroupColumns / static_cast<int>(kColumns);
constexpr int kTilesOfGroup = kRowTiles * kColumnTiles;
[[maybe_unused]] constexpr int kBlocksOfMultiprocessor = 2;  // a CPU has no such bounds
constexpr int kRoundsAtOnce = 8;

/// Both operands are K-major with swizzled rows of K = 64; 16 are used.
constexpr std::size_t kSharedBytes =
    (kGroupRows + kGroupColumns) * simt::kSwizzledRowBytes + simt::kSwizzlePatternBytes - 1;

/// Of an element, in words.
__device__ inline unsigned offset_in_operand(unsigned mn, unsigned k) {
  return simt::swizzle_128(mn * simt::kSwizzledRowBytes + k * 2) / 2;
}

template <class T>
__device__ simt::MatrixDescriptor operand(const T* first) {
  return simt::MatrixDescriptor::of(lib::shared_address(first), 0, simt::kSwizzlePatternBytes);
}

/// Where the i-th sum of a lane is in the tiles of its warp, which are neighbours in the product.
__device__ inline int position_in_tiles(int lane, int i) {
  const simt::Position position = simt::mma_position_in_c(lane, i % 4);
  return (i / 4 * static_cast<int>(kRows) + position.row) * static_cast<int>(kColumns) + position.column;
}

template <int kCount, class T>
__device__ inline void add_products(float (&sums)[lib::kSumsOf64<128>], const T* left, const T* right) {
  lib::warpgroup_fence();
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < kCount; ++i) lib::warpgroup_mma_m64k16<T, false, false>(sums, operand(left), operand(right));
  lib::warpgroup_commit();
  lib::warpgroup_wait<1>();  // the next products may be started while these run
}

template <class T>
__global__ void __launch_bounds__(kGroups* kGroupThreads, kBlocksOfMultiprocessor)
    peak_wgmma_kernel(const T* a, const T* b, float* y, std::int64_t tiles, std::int64_t rounds) {
  SIMT_DYNAMIC_SHARED(unsigned char, memory);
  T* left = reinterpret_cast<T*>(lib::align_shared<simt::kSwizzlePatternBytes>(memory));
  T* right = left + kGroupRows * simt::kSwizzledRowWords;
  constexpr unsigned kProductK = static_cast<unsigned>(kK);
  for (unsigned i : simt::block_range(0, kGroupRows * kProductK))
    left[offset_in_operand(i / kProductK, i % kProductK)] = a[i % (kRows * kProductK)];
  for (unsigned i : simt::block_range(0, kGroupColumns * kProductK))
    right[offset_in_operand(i / kProductK, i % kProductK)] = b[i % kProductK * kColumns + i / kProductK % kColumns];
  lib::warpgroup_publish();
  __syncthreads();  // both operands are there

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t warp = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  const std::int64_t tiles_of_warp = tiles - warp * kColumnTiles;  // that are left for it
  float* const tiles_of_y = y + warp * kColumnTiles * (kRows * kColumns);
  float sums[lib::kSumsOf64<128>];  // four of each tile: simt::warpgroup_position_in_d
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < lib::kSumsOf64<128>; ++i)
    sums[i] = i / 4 < tiles_of_warp ? tiles_of_y[position_in_tiles(lane, i)] : 0.0f;
  lib::warpgroup_expose(sums);
  std::int64_t round = 0;
  for (; round + kRoundsAtOnce <= rounds; round += kRoundsAtOnce) add_products<kRoundsAtOnce>(sums, left, right);
  for (; round < rounds; ++round) add_products<1>(sums, left, right);
  lib::warpgroup_wait_for(sums);
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < lib::kSumsOf64<128>; ++i)
    if (i / 4 < tiles_of_warp) tiles_of_y[position_in_tiles(lane, i)] = sums[i];
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  constexpr std::int64_t kTilesOfBlock = kGroups * kTilesOfGroup;
  const simt::Config config{.grid = dim3(static_cast<unsigned>((args.tiles + kTilesOfBlock - 1) / kTilesOfBlock)),
                            .block = dim3(kGroups * kGroupThreads),
                            .shared_bytes = kSharedBytes};
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch<peak_wgmma_kernel<T>>(stream, config, static_cast<const T*>(args.a), static_cast<const T*>(args.b),
                                       args.y, args.tiles, args.rounds);
  });
}

}  // namespace

Variant wgmma() {
  return {.name = "wgmma", .run = run, .supports = lib::supports_hopper_half, .computes = lib::is_half};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::peak
