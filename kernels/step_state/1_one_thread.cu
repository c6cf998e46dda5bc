// SPDX-License-Identifier: Apache-2.0
// Idea: a step is counted where it is decided: on the device, so that the host need not know whether it was skipped.
// Mapping: one thread.
// Traffic and bound: 16 bytes; bound by the launch.
// Still slow because: it is a launch of its own: the optimizer's last block could count as well.

#include "kernels/step_state/step_state.h"

#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::step_state {
inline namespace GRADRING_KERNEL_COPY {
namespace {

__global__ void step_state_advance_kernel(StepState* state) {
  if (!state->non_finite) ++state->applied_steps;
}

void advance(Stream& stream, const Args& args) {
  check_args(args);
  simt::launch_flat<step_state_advance_kernel>(stream, simt::Config{}, args.state);
}

}  // namespace

Variant one_thread() { return {"one_thread", advance, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::step_state
