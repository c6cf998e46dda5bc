// SPDX-License-Identifier: Apache-2.0
// adam and sgd.
// Idea: several neighbouring weights per iteration: on a GPU four, each array in one access of 16 bytes; on a CPU
//   enough for a loop over whole vectors.
// Mapping: grid-stride, one pack per thread and iteration (GPU); one contiguous run per thread (CPU). The remainder
//   after the last pack goes to the first threads.
// Traffic and bound: as the step before. Least time: those bytes over the bandwidth that a plain copy reaches.
// Gains over the step before: a quarter of the loads, stores and iterations, and four times the bytes in flight per
//   thread, which hides memory latency. Bit-identical results.
// Still slow because: each thread computes what all weights have in common, for one pack; and the state advances in a
//   launch of its own.
// Limits: arrays that do not start at a multiple of 16 bytes (the copy: 8) are moved element by element.

#include "kernels/lib/element.h"
#include "kernels/lib/pack.h"
#include "kernels/ops/optimizers/optimizers.h"
#include "kernels/ops/optimizers/update.h"
#include "kernels/ops/step_state/advance.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::adam {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// Copy is the type of the copy; with float there is none, and `copy` is not touched.
template <bool kWide, class Copy>
__global__ void adam_run_vector_kernel(std::size_t elements, float* __restrict__ weights,
                                       const float* __restrict__ gradients, float* __restrict__ m,
                                       float* __restrict__ v, Copy* __restrict__ copy,
                                       const step_state::StepState* __restrict__ state, const float* __restrict__ rate,
                                       Coefficients k) {
  constexpr bool kCopies = sizeof(Copy) < sizeof(float);
  if (state->non_finite) return;
  const Step step = step_of(*state, *rate, k);
  for (std::size_t pack : simt::grid_range(elements / lib::kPack)) {
    const std::size_t i = pack * lib::kPack;
    auto w_pack = lib::load_pack<kWide>(weights + i);
    const auto g_pack = lib::load_pack<kWide>(gradients + i);
    auto m_pack = lib::load_pack<kWide>(m + i);
    auto v_pack = lib::load_pack<kWide>(v + i);
    for (int j = 0; j < lib::kPack; ++j) w_pack[j] = updated(step, w_pack[j], g_pack[j], m_pack[j], v_pack[j]);
    lib::store_pack<kWide>(weights + i, w_pack);
    lib::store_pack<kWide>(m + i, m_pack);
    lib::store_pack<kWide>(v + i, v_pack);
    if constexpr (kCopies) lib::store_rounded<kWide>(copy + i, w_pack);
  }
  for (std::size_t i : lib::rest_range(elements)) {
    weights[i] = updated(step, weights[i], gradients[i], m[i], v[i]);
    if constexpr (kCopies) copy[i] = lib::from_f32<Copy>(weights[i]);
  }
}

void update(Stream& stream, const Args& args) {
  lib::with_element(args.copy ? args.copy_dtype : DType::f32, [&]<class Copy>(lib::Element<Copy>) {
    const bool wide = lib::is_pack_aligned(args.weights) && lib::is_pack_aligned(args.gradients) &&
                      lib::is_pack_aligned(args.m) && lib::is_pack_aligned(args.v) &&
                      lib::is_pack_aligned(static_cast<Copy*>(args.copy));
    lib::with_bool(wide, [&](auto is_wide) {
      simt::launch_flat<adam_run_vector_kernel<is_wide.value, Copy>>(
          stream, lib::grid_for_packs(stream, args.elements), args.elements, args.weights, args.gradients, args.m,
          args.v, static_cast<Copy*>(args.copy), args.state, rate_of(args), coefficients(args.hyper));
    });
  });
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.elements > 0) update(stream, args);
  if (args.end.advance.state) step_state::enqueue_advance(stream, args.end.advance);
}

}  // namespace

Variant vector() { return {"vector", run, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::adam

namespace gradring::kernels::sgd {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <bool kWide, bool kMomentum, class Copy>
__global__ void sgd_run_vector_kernel(std::size_t elements, float* __restrict__ weights,
                                      const float* __restrict__ gradients, float* __restrict__ buffer,
                                      Copy* __restrict__ copy, const step_state::StepState* __restrict__ state,
                                      const float* __restrict__ rate, Coefficients k) {
  constexpr bool kCopies = sizeof(Copy) < sizeof(float);
  if (state->non_finite) return;
  const Step step = step_of(*state, *rate, k);
  for (std::size_t pack : simt::grid_range(elements / lib::kPack)) {
    const std::size_t i = pack * lib::kPack;
    auto w_pack = lib::load_pack<kWide>(weights + i);
    const auto g_pack = lib::load_pack<kWide>(gradients + i);
    auto buffer_pack = lib::load_pack<kWide>(kMomentum ? buffer + i : weights + i);  // unused without momentum
    for (int j = 0; j < lib::kPack; ++j) {
      float g = decayed(step, w_pack[j], g_pack[j]);
      if constexpr (kMomentum) g = turned(step, g, buffer_pack[j]);
      w_pack[j] = moved(step, w_pack[j], g);
    }
    if constexpr (kMomentum) lib::store_pack<kWide>(buffer + i, buffer_pack);
    lib::store_pack<kWide>(weights + i, w_pack);
    if constexpr (kCopies) lib::store_rounded<kWide>(copy + i, w_pack);
  }
  for (std::size_t i : lib::rest_range(elements)) {
    float g = decayed(step, weights[i], gradients[i]);
    if constexpr (kMomentum) g = turned(step, g, buffer[i]);
    weights[i] = moved(step, weights[i], g);
    if constexpr (kCopies) copy[i] = lib::from_f32<Copy>(weights[i]);
  }
}

void update(Stream& stream, const Args& args) {
  lib::with_element(args.copy ? args.copy_dtype : DType::f32, [&]<class Copy>(lib::Element<Copy>) {
    const bool wide = lib::is_pack_aligned(args.weights) && lib::is_pack_aligned(args.gradients) &&
                      lib::is_pack_aligned(args.momentum_buffer) && lib::is_pack_aligned(static_cast<Copy*>(args.copy));
    lib::with_bool(args.hyper.momentum > 0, [&](auto has_momentum) {
      lib::with_bool(wide, [&](auto is_wide) {
        simt::launch_flat<sgd_run_vector_kernel<is_wide.value, has_momentum.value, Copy>>(
            stream, lib::grid_for_packs(stream, args.elements), args.elements, args.weights, args.gradients,
            args.momentum_buffer, static_cast<Copy*>(args.copy), args.state, rate_of(args), coefficients(args.hyper));
      });
    });
  });
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.elements > 0) update(stream, args);
  if (args.end.advance.state) step_state::enqueue_advance(stream, args.end.advance);
}

}  // namespace

Variant vector() { return {"vector", run, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::sgd
