// SPDX-License-Identifier: Apache-2.0
// adam, sgd and ema.
// Idea: all parameters lie in one arena, so one kernel updates them all; whether it does, whether it is the first step,
//   and with which learning rate, it reads from device memory, so that no host has to know. The copy in 16 bits that
//   mixed precision computes with is written on the way. ema follows the optimizer's kernel.
// Mapping: grid-stride, one element per thread and iteration (GPU); one contiguous run per thread (CPU).
// Traffic and bound: adam reads 16 bytes and writes 12 per element, sgd 12 and 8 (8 and 4 without momentum), 2 more
//   with a copy; ema 8 and 4; bound by memory.
// Still slow because: one element per load: on a GPU, 16-byte loads need fewer instructions; and ema reads the weights
//   once more, though the optimizer's kernel has just had them in registers.

#include "kernels/lib/element.h"
#include "kernels/ops/optimizers/optimizers.h"
#include "kernels/ops/optimizers/update.h"
#include "kernels/ops/step_state/advance.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::adam {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// Copy is the type of the copy; with float there is none, and `copy` is not touched.
template <class Copy>
__global__ void adam_run_flat_kernel(std::size_t elements, float* __restrict__ weights,
                                     const float* __restrict__ gradients, float* __restrict__ m, float* __restrict__ v,
                                     Copy* __restrict__ copy, const step_state::StepState* __restrict__ state,
                                     const float* __restrict__ rate, Coefficients k) {
  if (state->non_finite) return;
  const Step step = step_of(*state, *rate, k);
  for (std::size_t i : simt::grid_range(elements)) {
    const float w_new = updated(step, weights[i], gradients[i], m[i], v[i]);
    weights[i] = w_new;
    if constexpr (sizeof(Copy) < sizeof(float)) copy[i] = lib::from_f32<Copy>(w_new);
  }
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  lib::with_element(args.copy ? args.copy_dtype : DType::f32, [&]<class Copy>(lib::Element<Copy>) {
    simt::launch_flat<adam_run_flat_kernel<Copy>>(
        stream, simt::grid_for(stream, args.elements), args.elements, args.weights, args.gradients, args.m, args.v,
        static_cast<Copy*>(args.copy), args.state, rate_of(args), coefficients(args.hyper));
  });
  if (args.end.advance.state) step_state::enqueue_advance(stream, args.end.advance);
}

}  // namespace

Variant flat() { return {"flat", run, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::adam

namespace gradring::kernels::sgd {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <bool kMomentum, class Copy>
__global__ void sgd_run_flat_kernel(std::size_t elements, float* __restrict__ weights,
                                    const float* __restrict__ gradients, float* __restrict__ buffer,
                                    Copy* __restrict__ copy, const step_state::StepState* __restrict__ state,
                                    const float* __restrict__ rate, Coefficients k) {
  if (state->non_finite) return;
  const Step step = step_of(*state, *rate, k);
  for (std::size_t i : simt::grid_range(elements)) {
    const float w = weights[i];
    float g = decayed(step, w, gradients[i]);
    if constexpr (kMomentum) g = turned(step, g, buffer[i]);
    const float w_new = moved(step, w, g);
    weights[i] = w_new;
    if constexpr (sizeof(Copy) < sizeof(float)) copy[i] = lib::from_f32<Copy>(w_new);
  }
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  lib::with_element(args.copy ? args.copy_dtype : DType::f32, [&]<class Copy>(lib::Element<Copy>) {
    lib::with_bool(args.hyper.momentum > 0, [&](auto has_momentum) {
      simt::launch_flat<sgd_run_flat_kernel<has_momentum.value, Copy>>(
          stream, simt::grid_for(stream, args.elements), args.elements, args.weights, args.gradients,
          args.momentum_buffer, static_cast<Copy*>(args.copy), args.state, rate_of(args), coefficients(args.hyper));
    });
  });
  if (args.end.advance.state) step_state::enqueue_advance(stream, args.end.advance);
}

}  // namespace

Variant flat() { return {"flat", run, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::sgd

namespace gradring::kernels::ema {
inline namespace GRADRING_KERNEL_COPY {
namespace {

__global__ void ema_run_flat_kernel(std::size_t elements, const float* __restrict__ weights,
                                    float* __restrict__ average, const step_state::StepState* __restrict__ state,
                                    float share) {
  if (state->non_finite) return;
  const bool first = state->applied_steps == 0;  // then the average is nothing yet, or what began
  for (std::size_t i : simt::grid_range(elements)) {
    const float w = weights[i], before = average[i];
    average[i] = first ? w : fmaf(share, w - before, before);
  }
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  simt::launch_flat<ema_run_flat_kernel>(stream, simt::grid_for(stream, args.elements), args.elements, args.weights,
                                         args.average, args.state, static_cast<float>(1 - args.decay));
}

}  // namespace

Variant flat() { return {"flat", run, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::ema
