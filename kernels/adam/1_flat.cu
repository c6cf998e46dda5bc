// SPDX-License-Identifier: Apache-2.0
// Idea: all parameters lie in one arena, so one kernel updates them all; whether, and with which learning rate, it
//   reads from device memory. The copy in 16 bits that mixed precision computes with is written on the way.
// Mapping: one element a thread and turn; a thread strides over the grid (GPU) or takes one contiguous run (CPU).
// Traffic and bound: reads 16 bytes and writes 12 per element, 14 with a copy; bound by memory.
// Still slow because: one element a load: on a GPU, 16-byte loads would need fewer instructions.

#include "kernels/adam/adam.h"

#include <cmath>

#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::adam {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// Hyper in the form the kernel needs, rounded to float once, after all differences are taken.
struct Coefficients {
  float beta1, rest1, log_beta1;  // rest = 1 - beta
  float beta2, rest2, log_beta2;
  float epsilon, weight_decay;
  bool decoupled;
};

Coefficients coefficients(const Hyper& hyper) {
  const auto f32 = [](double value) { return static_cast<float>(value); };
  return {.beta1 = f32(hyper.beta1),
          .rest1 = f32(1 - hyper.beta1),
          .log_beta1 = f32(std::log(hyper.beta1)),
          .beta2 = f32(hyper.beta2),
          .rest2 = f32(1 - hyper.beta2),
          .log_beta2 = f32(std::log(hyper.beta2)),
          .epsilon = f32(hyper.epsilon),
          .weight_decay = f32(hyper.weight_decay),
          .decoupled = hyper.decoupled};
}

/// Copy is the type of the copy; with float there is none, and `copy` is not touched.
template <class Copy>
__global__ void adam_run_flat_kernel(std::size_t elements, float* __restrict__ weights,
                                     const float* __restrict__ gradients, float* __restrict__ m, float* __restrict__ v,
                                     Copy* __restrict__ copy, const step_state::StepState* __restrict__ state,
                                     Coefficients k) {
  if (state->non_finite) return;
  const float scale = state->gradient_scale;
  const float lr = state->learning_rate;
  const float t = static_cast<float>(state->applied_steps + 1);
  // 1 - beta^t, without the cancellation that beta close to 1 would bring.
  const float correction1 = -expm1f(t * k.log_beta1);
  const float correction2 = -expm1f(t * k.log_beta2);
  const float step_size = lr / correction1;
  const float root2 = sqrtf(correction2);
  const float shrink = k.decoupled ? 1.0f - lr * k.weight_decay : 1.0f;
  const float decay = k.decoupled ? 0.0f : k.weight_decay;
  for (std::size_t i : simt::grid_range(elements)) {
    const float w = weights[i] * shrink;
    const float g = gradients[i] * scale + decay * w;
    const float m_new = k.beta1 * m[i] + k.rest1 * g;
    const float v_new = k.beta2 * v[i] + k.rest2 * g * g;
    m[i] = m_new;
    v[i] = v_new;
    const float w_new = w - step_size * m_new / (sqrtf(v_new) / root2 + k.epsilon);
    weights[i] = w_new;
    if constexpr (sizeof(Copy) < sizeof(float)) copy[i] = lib::from_f32<Copy>(w_new);
  }
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  lib::with_element(args.copy ? args.copy_dtype : DType::f32, [&](auto element) {
    using Copy = typename decltype(element)::type;
    simt::launch_flat<adam_run_flat_kernel<Copy>>(stream, simt::grid_for(stream, args.elements), args.elements,
                                                  args.weights, args.gradients, args.m, args.v,
                                                  static_cast<Copy*>(args.copy), args.state, coefficients(args.hyper));
  });
}

}  // namespace

Variant flat() { return {"flat", run, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::adam
