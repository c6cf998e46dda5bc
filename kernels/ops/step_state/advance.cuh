// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/ops/step_state/steps.cuh"

/// The end of a step in a launch of its own.
namespace gradring::kernels::step_state {
inline namespace GRADRING_KERNEL_COPY {

/// Static, as each source that launches it has its own.
static __global__ void step_state_advance_kernel(AdvanceArgs args) { advance_step(args); }

inline void enqueue_advance(Stream& stream, const AdvanceArgs& args) {
  simt::launch_flat<step_state_advance_kernel>(stream, simt::Config{}, args);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::step_state
