// SPDX-License-Identifier: Apache-2.0
// Idea: y = factor * x, in f32, rounded once.
// Mapping: one element a thread and turn; a thread strides over the grid (GPU) or takes one contiguous run (CPU).
// Traffic and bound: reads and writes each element once; bound by memory.
// Still slow because: one element a load: on a GPU, 16-byte loads would need fewer instructions. Better still, the
//   kernel that made x multiplies.

#include "kernels/scale/scale.h"

#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::scale {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class T>
__global__ void scale_flat_kernel(const T* x, T* y, std::size_t elements, float factor) {
  for (std::size_t i : simt::grid_range(elements)) y[i] = lib::from_f32<T>(factor * lib::to_f32(x[i]));
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  lib::with_element(args.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    simt::launch_flat<scale_flat_kernel<T>>(stream, simt::grid_for(stream, args.elements),
                                            static_cast<const T*>(args.x), static_cast<T*>(args.y), args.elements,
                                            args.factor);
  });
}

}  // namespace

Variant flat() { return {"flat", run, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::scale
