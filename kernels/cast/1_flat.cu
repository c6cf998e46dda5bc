// SPDX-License-Identifier: Apache-2.0
// Idea: convert by way of f32, which holds every f16 and bf16 exactly: three readers and three writers make nine
//   casts.
// Mapping: one element a thread and turn; a thread strides over the grid (GPU) or takes one contiguous run (CPU).
// Traffic and bound: reads and writes each element once; bound by memory.
// Still slow because: one element a load: on a GPU, 16-byte loads and half2 conversions would need fewer
//   instructions.

#include "kernels/cast/cast.h"

#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::cast {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class From, class To>
__global__ void cast_flat_kernel(const From* __restrict__ x, To* __restrict__ y, std::size_t elements) {
  for (std::size_t i : simt::grid_range(elements)) y[i] = lib::from_f32<To>(lib::to_f32(x[i]));
}

template <class From, class To>
void launch(Stream& stream, const Args& args) {
  simt::launch_flat<cast_flat_kernel<From, To>>(stream, simt::grid_for(stream, args.elements),
                                                static_cast<const From*>(args.x), static_cast<To*>(args.y),
                                                args.elements);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  lib::with_element(args.from, [&](auto from) {
    lib::with_element(
        args.to, [&](auto to) { launch<typename decltype(from)::type, typename decltype(to)::type>(stream, args); });
  });
}

}  // namespace

Variant flat() { return {"flat", run, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::cast
