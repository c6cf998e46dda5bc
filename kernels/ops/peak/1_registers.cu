// SPDX-License-Identifier: Apache-2.0
// multiply_adds and mma.
// Idea: multiply-adds and nothing else: all operands are in registers. multiply_adds in f32; mma on tensor cores, by
//   mma.sync: a tile is one instruction.
// Mapping: a warp a tile; a thread two rows by two columns of it, as a tensor core lays them out
//   (simt/engine/tensor_layout.h).
// Traffic and bound: 1 KB a tile against 4096 operations a round; bound by the units that multiply and add; mma by the
//   tensor cores, as far as mma.sync reaches them.
// Gains of mma: 2048 multiply-adds an instruction and warp instead of 32.
// Still slow because: mma.sync does not keep the tensor cores of sm_90 busy.
// Limits: mma: f16 and bf16.

#include <cstring>

#include "kernels/lib/element.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/ops/peak/peak.h"
#include "kernels/simt/engine/tensor_layout.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::peak {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kResults = 4;  // of a tile, in each lane: simt::mma_position_in_c
constexpr unsigned kThreads = 256;

/// The results that one lane of the tile's warp holds while it computes.
class LaneOfTile {
 public:
  __device__ LaneOfTile(float* y, std::int64_t tile, int lane) : y_(y + tile * kRows * kColumns), lane_(lane) {}

  __device__ void load(float (&results)[kResults]) const {
    SIMT_UNROLL
    for (int i = 0; i < kResults; ++i) results[i] = y_[offset(i)];
  }
  __device__ void store(const float (&results)[kResults]) const {
    SIMT_UNROLL
    for (int i = 0; i < kResults; ++i) y_[offset(i)] = results[i];
  }

 private:
  __device__ int offset(int i) const {
    const simt::Position position = simt::mma_position_in_c(lane_, i);
    return position.row * static_cast<int>(kColumns) + position.column;
  }

  float* y_;
  int lane_;
};

/// A warp a tile.
simt::Config config_for(std::int64_t tiles) {
  const std::int64_t tiles_of_block = kThreads / 32;
  return {.grid = dim3(static_cast<unsigned>((tiles + tiles_of_block - 1) / tiles_of_block)), .block = dim3(kThreads)};
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    peak_multiply_adds_kernel(const T* a, const T* b, float* y, std::int64_t tiles, std::int64_t rounds) {
  constexpr int kProductK = static_cast<int>(kK);
  const std::int64_t tile = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (tile >= tiles) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const simt::Position first = simt::mma_position_in_c(lane, 0);
  const simt::Position last = simt::mma_position_in_c(lane, kResults - 1);
  float rows[2][kProductK], columns[2][kProductK];
  SIMT_UNROLL
  for (int k = 0; k < kProductK; ++k) {
    rows[0][k] = lib::to_f32(a[first.row * kProductK + k]);
    rows[1][k] = lib::to_f32(a[last.row * kProductK + k]);
    columns[0][k] = lib::to_f32(b[k * static_cast<int>(kColumns) + first.column]);
    columns[1][k] = lib::to_f32(b[k * static_cast<int>(kColumns) + last.column]);
  }
  const LaneOfTile lane_of_tile(y, tile, lane);
  float results[kResults];
  lane_of_tile.load(results);
  for (std::int64_t round = 0; round < rounds; ++round) {
    SIMT_UNROLL
    for (int k = 0; k < kProductK; ++k) {
      SIMT_UNROLL
      for (int i = 0; i < kResults; ++i) results[i] = __fmaf_rn(rows[i / 2][k], columns[i % 2][k], results[i]);
    }
  }
  lane_of_tile.store(results);
}

void run_multiply_adds(Stream& stream, const Args& args) {
  check_args(args);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<peak_multiply_adds_kernel<T>>(stream, config_for(args.tiles), static_cast<const T*>(args.a),
                                                    static_cast<const T*>(args.b), args.y, args.tiles, args.rounds);
  });
}

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
    const simt::Position position = simt::mma_position_in_a(lane, i);
    return a[position.row * static_cast<int>(kK) + position.column];
  };
  const auto of_b = [&](int i) {
    const simt::Position position = simt::mma_position_in_b(lane, i);
    return b[position.row * static_cast<int>(kColumns) + position.column];
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

void run_mma(Stream& stream, const Args& args) {
  check_args(args);
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch<peak_mma_kernel<T>>(stream, config_for(args.tiles), static_cast<const T*>(args.a),
                                     static_cast<const T*>(args.b), args.y, args.tiles, args.rounds);
  });
}

}  // namespace

Variant multiply_adds() {
  return {.name = "multiply_adds", .run = run_multiply_adds, .supports = lib::supports_floating};
}

Variant mma() { return {.name = "mma", .run = run_mma, .supports = lib::supports_cuda_half, .computes = lib::is_half}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::peak
