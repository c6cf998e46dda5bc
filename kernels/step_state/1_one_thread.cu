// SPDX-License-Identifier: Apache-2.0
// Idea: a step is counted where it is decided: on the device, so that the host need not know whether it was skipped,
//   nor with which loss scale the next one runs.
// Mapping: one thread.
// Traffic and bound: one StepState; bound by the launch.
// Still slow because: it is a launch of its own: the optimizer's last block could count as well.

#include "kernels/step_state/step_state.h"

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
  state.gradient_scale = static_cast<float>(1.0 / static_cast<double>(state.loss_scale));
}

__global__ void step_state_advance_kernel(StepState* state, LossScalePolicy policy, bool dynamic) {
  ++(state->non_finite ? state->skipped_steps : state->applied_steps);
  if (dynamic) follow(*state, policy);
}

void advance(Stream& stream, const Args& args) {
  check_args(args);
  simt::launch_flat<step_state_advance_kernel>(stream, simt::Config{}, args.state, args.policy, args.dynamic);
}

}  // namespace

Variant one_thread() { return {"one_thread", advance, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::step_state
