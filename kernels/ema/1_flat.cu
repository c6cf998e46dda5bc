// SPDX-License-Identifier: Apache-2.0
// Idea: the average is taken where the weights lie, after the optimizer's kernel; whether the step counts, and whether
//   it is the first, it reads from device memory, so that no host has to know.
// Mapping: grid-stride, one element per thread and iteration (GPU); one contiguous run per thread (CPU).
// Traffic and bound: reads 8 bytes and writes 4 per element; bound by memory.
// Still slow because: one element per load: on a GPU, 16-byte loads need fewer instructions; and the weights are read
//   once more, though the optimizer's kernel has just had them in registers.

#include "kernels/ema/ema.h"
#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

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
