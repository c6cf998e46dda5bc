// SPDX-License-Identifier: Apache-2.0
// Idea: a step is counted where it is decided: on the device, so that the host need not know whether it was skipped,
//   how much its gradients were clipped, which learning rate that makes it, nor with which loss scale the next one
//   runs.
// Mapping: one thread.
// Traffic and bound: one StepState; bound by the launch.
// Still slow because: it is a launch of its own: the optimizer's last block could count as well.

#include "kernels/ops/step_state/step_state.h"

#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::step_state {
inline namespace GRADRING_KERNEL_COPY {
namespace {

__device__ void follow(StepState& state, const LossScalePolicy& policy) {
  if (state.non_finite) {
    state.loss_scale *= policy.backoff_factor;
    state.growth_tracker = 0;
  } else if (++state.growth_tracker == policy.growth_interval) {
    const float grown = state.loss_scale * policy.growth_factor;
    if (isfinite(grown)) state.loss_scale = grown;
    state.growth_tracker = 0;
  }
}

__global__ void step_state_prepare_kernel(PrepareArgs args) {
  StepState& state = *args.state;
  const std::int32_t last = args.count - 1;
  const std::int32_t step = state.applied_steps < last ? state.applied_steps : last;
  state.learning_rate = args.learning_rates[step];
  for (std::int32_t group = 0; args.rates && group < args.groups; ++group)
    args.rates[group] = args.learning_rates[static_cast<std::int64_t>(group) * args.count + step];
  double scale = 1.0 / static_cast<double>(state.loss_scale);
  if (args.sum_of_squares) {
    const double norm = sqrt(static_cast<double>(*args.sum_of_squares)) * scale;
    state.gradient_norm = static_cast<float>(norm);
    const double factor = static_cast<double>(args.most_norm) / (norm + kNormFloor);
    if (!state.non_finite && factor < 1) scale *= factor;
  }
  state.gradient_scale = static_cast<float>(scale);
}

__global__ void step_state_advance_kernel(StepState* state, LossScalePolicy policy, bool dynamic) {
  ++(state->non_finite ? state->skipped_steps : state->applied_steps);
  if (dynamic) follow(*state, policy);
}

void prepare(Stream& stream, const PrepareArgs& args) {
  check_args(args);
  simt::launch_flat<step_state_prepare_kernel>(stream, simt::Config{}, args);
}

void advance(Stream& stream, const AdvanceArgs& args) {
  check_args(args);
  simt::launch_flat<step_state_advance_kernel>(stream, simt::Config{}, args.state, args.policy, args.dynamic);
}

}  // namespace

Variant one_thread() { return {"one_thread", prepare, advance, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::step_state
