// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/sgd/sgd.h"
#include "kernels/simt/simt.h"

/// The arithmetic of one weight, which all kernels of this folder share, so that they give the same bits. The fused
/// multiplications are written out: a compiler that chooses them may choose others in another kernel.
namespace gradring::kernels::sgd {
inline namespace GRADRING_KERNEL_COPY {

/// Hyper in float.
struct Coefficients {
  float momentum, rest, weight_decay;  // rest = 1 - dampening
  bool nesterov;
};

inline Coefficients coefficients(const Hyper& h) {
  return {.momentum = static_cast<float>(h.momentum),
          .rest = static_cast<float>(1 - h.dampening),
          .weight_decay = static_cast<float>(h.weight_decay),
          .nesterov = h.nesterov};
}

/// What all weights have in common in one step.
struct Step {
  float scale, lr;
  bool first;
  Coefficients k;
};

__device__ inline Step step_of(const step_state::StepState& state, const Coefficients& k) {
  return {.scale = state.gradient_scale, .lr = state.learning_rate, .first = state.applied_steps == 0, .k = k};
}

/// The gradient with the decay in it.
__device__ inline float decayed(const Step& s, float weight, float gradient) {
  return fmaf(gradient, s.scale, s.k.weight_decay * weight);
}

/// Where momentum turns the gradient g; `buffer` becomes the new velocity.
__device__ inline float turned(const Step& s, float g, float& buffer) {
  const float velocity = s.first ? g : fmaf(s.k.momentum, buffer, s.k.rest * g);
  buffer = velocity;
  return s.k.nesterov ? fmaf(s.k.momentum, velocity, g) : velocity;
}

__device__ inline float moved(const Step& s, float weight, float g) { return fmaf(-s.lr, g, weight); }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::sgd
