// SPDX-License-Identifier: Apache-2.0
#include "kernels/lib/bulk_tensor.h"
#include "kernels/lib/warpgroup_mma.h"
#include "kernels/simt/simt.h"
#include "tests/kernels/simt/planted/harness.h"
#include "tests/kernels/simt/planted/planted.h"

namespace gradring::simt_test {
namespace {

namespace lib = kernels::lib;

enum class Mistake { none, no_wait, released_while_read, released_by_a_fast_lane };

constexpr int kStages = 2;
constexpr int kRounds = 6;
constexpr int kReaders = 2;          // warps
constexpr int kFloatsOfStage = 256;  // 8 rows of 128 bytes
constexpr unsigned kSharedBytes = (kStages + 1) * kFloatsOfStage * sizeof(float);

/// A warp's lane 0 brings 8 rows of x a round; each thread of two other warps adds up the first number of a piece.
template <Mistake mistake>
__global__ void sum_rounds(SIMT_GRID_CONST(simt::TensorMap) x, float* y) {
  SIMT_DYNAMIC_SHARED(unsigned char, memory);
  SIMT_SHARED(lib::BarrierPipe<kStages>, pipe);
  auto* stages = reinterpret_cast<float*>(lib::align_shared<simt::kSwizzlePatternBytes>(memory));
  const int t = static_cast<int>(threadIdx.x);
  const bool speaks = t % 32 == 0;
  if (t == 0) pipe.init(kReaders);
  __syncthreads();  // the pipe's barriers are initialised
  if (t >= 32 * kReaders) {
    for (int round = 0; speaks && round < kRounds; ++round)
      lib::bulk_load(stages + round % kStages * kFloatsOfStage, x, 8 * round, 0,
                     pipe.begin_fill(round, kFloatsOfStage * sizeof(float)));
    return;
  }
  float sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (mistake != Mistake::no_wait) pipe.wait_filled(round);
    if (mistake == Mistake::released_while_read) {
      __syncwarp();
      if (speaks) pipe.release(round);
    }
    sum += stages[round % kStages * kFloatsOfStage + t / 8 * 32 + (t % 8 ^ t / 8) * 4];
    if (mistake == Mistake::released_while_read) continue;
    if (mistake != Mistake::released_by_a_fast_lane) __syncwarp();  // all lanes have read
    if (speaks) pipe.release(round);
  }
  y[t] = sum;
}

template <Mistake mistake>
bool run(kernels::Device& device) {
  Bench bench(device, kRounds * kFloatsOfStage);
  const simt::TensorMap x =
      simt::make_tensor_map({.data = bench.x(), .rows = 8 * kRounds, .columns = 64, .box_rows = 8});
  simt::launch<sum_rounds<mistake>>(bench.stream(), {.block = 32 * (kReaders + 1), .shared_bytes = kSharedBytes}, x,
                                    bench.y());
  return bench.holds(32 * kReaders, [](std::size_t i) {
    float sum = 0;
    for (std::size_t round = 0; round < kRounds; ++round) sum += static_cast<float>(kFloatsOfStage * round + 4 * i + 1);
    return sum;
  });
}

const Planted kPipeRaces[] = {
    {"pipe", &run<Mistake::none>},
    {"pipe_without_wait", &run<Mistake::no_wait>},
    {"pipe_released_while_read", &run<Mistake::released_while_read>},
    {"pipe_released_by_a_fast_lane", &run<Mistake::released_by_a_fast_lane>},
};

}  // namespace

std::span<const Planted> planted_pipe_races() { return kPipeRaces; }

}  // namespace gradring::simt_test
