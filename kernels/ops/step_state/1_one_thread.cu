// SPDX-License-Identifier: Apache-2.0
// Idea: a step is counted where it is decided: on the device, so that the host need not know whether it was skipped,
//   how much its gradients were clipped, which learning rate that makes it, nor with which loss scale the next one
//   runs.
// Mapping: one thread.
// Traffic and bound: one StepState; bound by the launch.
// Still slow because: it is a launch of its own. So the last blocks of gradient_statistics and of an optimizer run the
//   same text (steps.cuh), where they can.

#include "kernels/lib/element.h"
#include "kernels/ops/step_state/advance.cuh"

namespace gradring::kernels::step_state {
inline namespace GRADRING_KERNEL_COPY {
namespace {

__global__ void step_state_prepare_kernel(PrepareArgs args) { prepare_step(args); }

void prepare(Stream& stream, const PrepareArgs& args) {
  check_args(args);
  simt::launch_flat<step_state_prepare_kernel>(stream, simt::Config{}, args);
}

void advance(Stream& stream, const AdvanceArgs& args) {
  check_args(args);
  enqueue_advance(stream, args);
}

}  // namespace

Variant one_thread() { return {"one_thread", prepare, advance, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::step_state
