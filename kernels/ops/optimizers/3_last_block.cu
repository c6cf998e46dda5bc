// SPDX-License-Identifier: Apache-2.0
// adam and sgd.
// Idea: adam: one thread of a block computes what all weights have in common (two powers above all), while the others
//   wait for their weights. Both: the last block that has read the state advances it and reports the step, so that
//   nothing follows the update.
// Mapping: each thread handles two packs of four weights, each block 512 packs: a warp's accesses are 512 bytes in one
//   piece. The remainder after the last pack is the last block's.
// Traffic and bound: as the step before, and one word that the blocks count in.
// Gains over the step before: half the instructions, and a launch and two copies less a step. Bit-identical results.
// Still slow because: gradients are read from memory again; the step could be taken where they are produced.
// Limits: for GPUs. Arrays that do not start at a multiple of 16 bytes (the copy: 8) are moved element by element.

#include <algorithm>
#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/lib/last_block.h"
#include "kernels/ops/optimizers/optimizers.h"
#include "kernels/ops/optimizers/update.h"
#include "kernels/ops/step_state/steps.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kThreads = 256;
constexpr int kPack = 4;
constexpr int kPacksOfThread = 2;
constexpr std::size_t kOfBlock = std::size_t{kThreads} * kPacksOfThread * kPack;

template <class T>
struct alignas(kPack * sizeof(T)) Pack {
  T values[kPack];
};

/// A thread's packs of an array of `elements`: pack p begins at element first + p * kThreads * kPack.
struct PacksOfThread {
  std::size_t first;
  std::size_t elements;

  __device__ explicit PacksOfThread(std::size_t all)
      : first(std::size_t{blockIdx.x} * kOfBlock + std::size_t{threadIdx.x} * kPack), elements(all) {}
  __device__ std::size_t at(int p) const { return first + static_cast<std::size_t>(p) * kThreads * kPack; }
  __device__ bool is_whole(int p) const { return at(p) + kPack <= elements; }

  /// Elements that do not exist are 0.
  template <bool kWide>
  __device__ void load(const float* from, Pack<float> (&packs)[kPacksOfThread]) const {
    SIMT_UNROLL
    for (int p = 0; p < kPacksOfThread; ++p) {
      if (kWide && is_whole(p)) {
        packs[p] = simt::load_as<Pack<float>>(from + at(p));
      } else {
        SIMT_UNROLL
        for (int j = 0; j < kPack; ++j) packs[p].values[j] = at(p) + j < elements ? from[at(p) + j] : 0.0f;
      }
    }
  }
  /// Rounds to T.
  template <bool kWide, class T>
  __device__ void store(T* to, const Pack<float> (&packs)[kPacksOfThread]) const {
    SIMT_UNROLL
    for (int p = 0; p < kPacksOfThread; ++p) {
      if (kWide && is_whole(p)) {
        Pack<T> rounded;
        SIMT_UNROLL
        for (int j = 0; j < kPack; ++j) rounded.values[j] = lib::from_f32<T>(packs[p].values[j]);
        simt::store_as<Pack<T>>(to + at(p), rounded);
      } else {
        SIMT_UNROLL
        for (int j = 0; j < kPack; ++j)
          if (at(p) + j < elements) to[at(p) + j] = lib::from_f32<T>(packs[p].values[j]);
      }
    }
  }
};

template <class T>
bool is_aligned(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignof(Pack<T>) == 0;
}

/// At least one block, to end a step without weights.
simt::Config grid_of(std::size_t elements) {
  return {.grid = dim3(static_cast<unsigned>(std::max<std::size_t>((elements + kOfBlock - 1) / kOfBlock, 1))),
          .block = dim3(kThreads)};
}

/// Tells that the block has read the state: the last one to do so ends the step. The rest of the block does not wait for
/// that, as it does nothing to the weights. All threads call it.
class Arrival {
 public:
  __device__ explicit Arrival(const StepEnd& end) : end_(end) {
    __syncthreads();  // all threads have read the state
    if (threadIdx.x == 0 && end.advance.state) is_last_ = lib::arrives_last(end.arrivals);
  }
  __device__ void end_step() const {
    if (is_last_) step_state::advance_step(end_.advance);
  }

 private:
  const StepEnd& end_;
  bool is_last_ = false;
};

}  // namespace
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels

namespace gradring::kernels::adam {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// Copy is the type of the copy; with float there is none, and `copy` is not touched.
template <bool kWide, class Copy>
__global__ void __launch_bounds__(kThreads)
    adam_run_last_block_kernel(std::size_t elements, float* __restrict__ weights, const float* __restrict__ gradients,
                               float* __restrict__ m, float* __restrict__ v, Copy* __restrict__ copy,
                               const step_state::StepState* state, const float* rate, SIMT_GRID_CONST(Coefficients) k,
                               SIMT_GRID_CONST(StepEnd) end) {
  SIMT_SHARED(Step, common);
  const PacksOfThread mine(elements);
  Pack<float> w[kPacksOfThread], g[kPacksOfThread], first[kPacksOfThread], second[kPacksOfThread];
  mine.load<kWide>(weights, w);
  mine.load<kWide>(gradients, g);
  mine.load<kWide>(m, first);
  mine.load<kWide>(v, second);
  const bool applies = state->non_finite == 0;
  if (threadIdx.x == 0 && applies) common = step_of(*state, *rate, k);
  const Arrival arrival(end);
  if (applies) {
    const Step step = common;  // written before the barrier of Arrival
    SIMT_UNROLL
    for (int p = 0; p < kPacksOfThread; ++p) {
      SIMT_UNROLL
      for (int j = 0; j < kPack; ++j)
        w[p].values[j] = updated(step, w[p].values[j], g[p].values[j], first[p].values[j], second[p].values[j]);
    }
    mine.store<kWide>(weights, w);
    mine.store<kWide>(m, first);
    mine.store<kWide>(v, second);
    if constexpr (sizeof(Copy) < sizeof(float)) mine.store<kWide>(copy, w);
  }
  arrival.end_step();
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.elements == 0 && !args.end.advance.state) return;
  lib::with_element(args.copy ? args.copy_dtype : DType::f32, [&]<class Copy>(lib::Element<Copy>) {
    auto* const copy = static_cast<Copy*>(args.copy);
    const bool wide = is_aligned(args.weights) && is_aligned(args.gradients) && is_aligned(args.m) &&
                      is_aligned(args.v) && is_aligned(copy);
    lib::with_bool(wide, [&](auto is_wide) {
      simt::launch<adam_run_last_block_kernel<is_wide.value, Copy>>(
          stream, grid_of(args.elements), args.elements, args.weights, args.gradients, args.m, args.v, copy, args.state,
          rate_of(args), coefficients(args.hyper), args.end);
    });
  });
}

}  // namespace

Variant last_block() { return {"last_block", run, lib::supports_cuda_floating, lib::is_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::adam

namespace gradring::kernels::sgd {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <bool kWide, bool kMomentum, class Copy>
__global__ void __launch_bounds__(kThreads)
    sgd_run_last_block_kernel(std::size_t elements, float* __restrict__ weights, const float* __restrict__ gradients,
                              float* __restrict__ buffer, Copy* __restrict__ copy, const step_state::StepState* state,
                              const float* rate, SIMT_GRID_CONST(Coefficients) k, SIMT_GRID_CONST(StepEnd) end) {
  const PacksOfThread mine(elements);
  Pack<float> w[kPacksOfThread], g[kPacksOfThread], velocity[kPacksOfThread];
  mine.load<kWide>(weights, w);
  mine.load<kWide>(gradients, g);
  if constexpr (kMomentum) mine.load<kWide>(buffer, velocity);
  const bool applies = state->non_finite == 0;
  const Step step = step_of(*state, *rate, k);
  const Arrival arrival(end);
  if (applies) {
    SIMT_UNROLL
    for (int p = 0; p < kPacksOfThread; ++p) {
      SIMT_UNROLL
      for (int j = 0; j < kPack; ++j) {
        float gradient = decayed(step, w[p].values[j], g[p].values[j]);
        if constexpr (kMomentum) gradient = turned(step, gradient, velocity[p].values[j]);
        w[p].values[j] = moved(step, w[p].values[j], gradient);
      }
    }
    if constexpr (kMomentum) mine.store<kWide>(buffer, velocity);
    mine.store<kWide>(weights, w);
    if constexpr (sizeof(Copy) < sizeof(float)) mine.store<kWide>(copy, w);
  }
  arrival.end_step();
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.elements == 0 && !args.end.advance.state) return;
  lib::with_element(args.copy ? args.copy_dtype : DType::f32, [&]<class Copy>(lib::Element<Copy>) {
    auto* const copy = static_cast<Copy*>(args.copy);
    const bool wide =
        is_aligned(args.weights) && is_aligned(args.gradients) && is_aligned(args.momentum_buffer) && is_aligned(copy);
    lib::with_bool(args.hyper.momentum > 0, [&](auto has_momentum) {
      lib::with_bool(wide, [&](auto is_wide) {
        simt::launch<sgd_run_last_block_kernel<is_wide.value, has_momentum.value, Copy>>(
            stream, grid_of(args.elements), args.elements, args.weights, args.gradients, args.momentum_buffer, copy,
            args.state, rate_of(args), coefficients(args.hyper), args.end);
      });
    });
  });
}

}  // namespace

Variant last_block() { return {"last_block", run, lib::supports_cuda_floating, lib::is_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::sgd
