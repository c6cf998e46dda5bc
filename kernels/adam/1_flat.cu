// SPDX-License-Identifier: Apache-2.0
// Idea: all parameters lie in one arena, so one kernel updates them all; whether, and with which learning rate, it
//   reads from device memory. The copy in 16 bits that mixed precision computes with is written on the way.
// Mapping: grid-stride, one element per thread and iteration (GPU); one contiguous run per thread (CPU).
// Traffic and bound: reads 16 bytes and writes 12 per element, 14 with a copy; bound by memory.
// Still slow because: one element per load: on a GPU, 16-byte loads need fewer instructions.

#include "kernels/adam/adam.h"

#include "kernels/adam/update.h"
#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::adam {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// Copy is the type of the copy; with float there is none, and `copy` is not touched.
template <class Copy>
__global__ void adam_run_flat_kernel(std::size_t elements, float* __restrict__ weights,
                                     const float* __restrict__ gradients, float* __restrict__ m, float* __restrict__ v,
                                     Copy* __restrict__ copy, const step_state::StepState* __restrict__ state,
                                     Coefficients k) {
  if (state->non_finite) return;
  const Step step = step_of(*state, k);
  for (std::size_t i : simt::grid_range(elements)) {
    const float w_new = updated(step, weights[i], gradients[i], m[i], v[i]);
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
