// SPDX-License-Identifier: Apache-2.0
// Idea: all parameters lie in one arena, so one kernel updates them all; whether it is the first step, and the
//   learning rate, it reads from device memory. The copy in 16 bits that mixed precision computes with is written on
//   the way.
// Mapping: grid-stride, one element per thread and iteration (GPU); one contiguous run per thread (CPU).
// Traffic and bound: reads 12 bytes and writes 8 per element (8 and 4 without momentum), 2 more with a copy; bound by
//   memory.
// Still slow because: one element per load: on a GPU, 16-byte loads need fewer instructions.

#include "kernels/sgd/sgd.h"

#include "kernels/lib/element.h"
#include "kernels/sgd/update.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::sgd {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// Copy is the type of the copy; with float there is none, and `copy` is not touched.
template <bool kMomentum, class Copy>
__global__ void sgd_run_flat_kernel(std::size_t elements, float* __restrict__ weights,
                                    const float* __restrict__ gradients, float* __restrict__ buffer,
                                    Copy* __restrict__ copy, const step_state::StepState* __restrict__ state,
                                    Coefficients k) {
  if (state->non_finite) return;
  const Step step = step_of(*state, k);
  for (std::size_t i : simt::grid_range(elements)) {
    const float w = weights[i];
    float g = decayed(step, w, gradients[i]);
    if constexpr (kMomentum) g = turned(step, g, buffer[i]);
    const float w_new = moved(step, w, g);
    weights[i] = w_new;
    if constexpr (sizeof(Copy) < sizeof(float)) copy[i] = lib::from_f32<Copy>(w_new);
  }
}

template <bool kMomentum>
void launch(Stream& stream, const Args& args) {
  lib::with_element(args.copy ? args.copy_dtype : DType::f32, [&](auto element) {
    using Copy = typename decltype(element)::type;
    simt::launch_flat<sgd_run_flat_kernel<kMomentum, Copy>>(
        stream, simt::grid_for(stream, args.elements), args.elements, args.weights, args.gradients,
        args.momentum_buffer, static_cast<Copy*>(args.copy), args.state, coefficients(args.hyper));
  });
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.hyper.momentum > 0)
    launch<true>(stream, args);
  else
    launch<false>(stream, args);
}

}  // namespace

Variant flat() { return {"flat", run, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::sgd
