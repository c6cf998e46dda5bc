// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/ops/step_state/step_state.h"
#include "kernels/simt/simt.h"

/// What one thread does to the state: in a kernel of its own (advance.cuh), or in the last block of another operation.
namespace gradring::kernels::step_state {
inline namespace GRADRING_KERNEL_COPY {

/// The first part of prepare: the learning rates.
__device__ inline void set_rates(const PrepareArgs& args) {
  StepState& state = *args.state;
  const std::int32_t last = args.count - 1;
  const std::int32_t step = state.applied_steps < last ? state.applied_steps : last;
  state.learning_rate = args.learning_rates[step];
  for (std::int32_t group = 0; args.rates && group < args.groups; ++group)
    args.rates[group] = args.learning_rates[static_cast<std::int64_t>(group) * args.count + step];
}

/// The rest: gradient_norm and gradient_scale, of what a caller has read or computed. `inverse_scale`: 1 / loss_scale.
__device__ inline void set_scale(const PrepareArgs& args, double inverse_scale, float sum_of_squares, bool non_finite) {
  double scale = inverse_scale;
  if (args.sum_of_squares) {
    const double norm = sqrt(static_cast<double>(sum_of_squares)) * scale;
    args.state->gradient_norm = static_cast<float>(norm);
    const double factor = static_cast<double>(args.most_norm) / (norm + kNormFloor);
    if (!non_finite && factor < 1) scale *= factor;
  }
  args.state->gradient_scale = static_cast<float>(scale);
}

__device__ inline double inverse_loss_scale(const StepState& state) {
  return 1.0 / static_cast<double>(state.loss_scale);
}

__device__ inline void prepare_step(const PrepareArgs& args) {
  set_rates(args);
  set_scale(args, inverse_loss_scale(*args.state), args.sum_of_squares ? *args.sum_of_squares : 0,
            args.state->non_finite != 0);
}

__device__ inline void follow_gradients(StepState& state, const LossScalePolicy& policy) {
  if (state.non_finite) {
    state.loss_scale *= policy.backoff_factor;
    state.growth_tracker = 0;
  } else if (++state.growth_tracker == policy.growth_interval) {
    const float grown = state.loss_scale * policy.growth_factor;
    if (isfinite(grown)) state.loss_scale = grown;
    state.growth_tracker = 0;
  }
}

__device__ inline void advance_step(const AdvanceArgs& args) {
  StepState state = *args.state;
  if (args.reports.ring) {
    const std::uint32_t number = (*args.reports.written)++;
    args.reports.ring[number % args.reports.count] = {state, *args.reports.loss_sum};
  }
  ++(state.non_finite ? state.skipped_steps : state.applied_steps);
  if (args.dynamic) follow_gradients(state, args.policy);
  *args.state = state;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::step_state
