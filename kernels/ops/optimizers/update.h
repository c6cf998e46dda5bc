// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/ops/optimizers/optimizers.h"
#include "kernels/simt/simt.h"

/// The arithmetic of one weight, which all kernels of this folder share, so that they give the same bits. The fused
/// multiplications are written out: a compiler that chooses them may choose others in another kernel.
namespace gradring::kernels {
inline namespace GRADRING_KERNEL_COPY {

/// Where the learning rate of these weights is.
template <class Args>
const float* rate_of(const Args& args) {
  return args.learning_rate ? args.learning_rate : &args.state->learning_rate;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels

namespace gradring::kernels::adam {
inline namespace GRADRING_KERNEL_COPY {

/// Hyper in the form the kernels need, rounded to float once, after all differences are taken.
struct Coefficients {
  float beta1, rest1, log_beta1;  // rest = 1 - beta
  float beta2, rest2, log_beta2;
  float epsilon, weight_decay;
  bool decoupled;
};

inline Coefficients coefficients(const Hyper& hyper) {
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

/// What all weights have in common in one step.
struct Step {
  float scale, beta1, rest1, beta2, rest2;
  float step_size;           // lr / (1 - beta1^t)
  float per_root2, epsilon;  // per_root2 = 1 / sqrt(1 - beta2^t)
  float shrink, decay;       // of AdamW (L2: 1); of L2 (AdamW: 0)
};

__device__ inline Step step_of(const step_state::StepState& state, float lr, const Coefficients& k) {
  const float t = static_cast<float>(state.applied_steps + 1);
  // 1 - beta^t, without the cancellation that beta close to 1 would bring.
  const float correction1 = -expm1f(t * k.log_beta1);
  const float correction2 = -expm1f(t * k.log_beta2);
  return {.scale = state.gradient_scale,
          .beta1 = k.beta1,
          .rest1 = k.rest1,
          .beta2 = k.beta2,
          .rest2 = k.rest2,
          .step_size = lr / correction1,
          .per_root2 = 1 / sqrtf(correction2),
          .epsilon = k.epsilon,
          .shrink = k.decoupled ? 1.0f - lr * k.weight_decay : 1.0f,
          .decay = k.decoupled ? 0.0f : k.weight_decay};
}

/// The new weight; m and v become theirs.
__device__ inline float updated(const Step& s, float weight, float gradient, float& m, float& v) {
  const float g = fmaf(gradient, s.scale, s.decay * weight);
  m = fmaf(s.beta1, m, s.rest1 * g);
  v = fmaf(s.beta2, v, s.rest2 * g * g);
  return fmaf(weight, s.shrink, -(s.step_size * m / fmaf(sqrtf(v), s.per_root2, s.epsilon)));
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::adam

namespace gradring::kernels::sgd {
inline namespace GRADRING_KERNEL_COPY {

/// Hyper in float.
struct Coefficients {
  float momentum, rest, weight_decay;  // rest = 1 - dampening
  bool nesterov, decoupled;
};

inline Coefficients coefficients(const Hyper& h) {
  return {.momentum = static_cast<float>(h.momentum),
          .rest = static_cast<float>(1 - h.dampening),
          .weight_decay = static_cast<float>(h.weight_decay),
          .nesterov = h.nesterov,
          .decoupled = h.decoupled};
}

/// What all weights have in common in one step.
struct Step {
  float scale, lr;
  float shrink, decay;  // of SGDW (L2: 1); of L2 (SGDW: 0)
  bool first;
  Coefficients k;
};

__device__ inline Step step_of(const step_state::StepState& state, float lr, const Coefficients& k) {
  return {.scale = state.gradient_scale,
          .lr = lr,
          .shrink = k.decoupled ? 1.0f - lr * k.weight_decay : 1.0f,
          .decay = k.decoupled ? 0.0f : k.weight_decay,
          .first = state.applied_steps == 0,
          .k = k};
}

/// The gradient with the decay in it.
__device__ inline float decayed(const Step& s, float weight, float gradient) {
  return fmaf(gradient, s.scale, s.decay * weight);
}

/// Where momentum turns the gradient g; `buffer` becomes the new velocity.
__device__ inline float turned(const Step& s, float g, float& buffer) {
  const float velocity = s.first ? g : fmaf(s.k.momentum, buffer, s.k.rest * g);
  buffer = velocity;
  return s.k.nesterov ? fmaf(s.k.momentum, velocity, g) : velocity;
}

__device__ inline float moved(const Step& s, float weight, float g) { return fmaf(-s.lr, g, s.shrink * weight); }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::sgd
