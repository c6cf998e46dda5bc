// SPDX-License-Identifier: Apache-2.0
// Idea: the output alone says where the gradient passes, so the input need not be kept.
// Mapping: one element a thread and turn; a thread strides over the grid (GPU) or takes one contiguous run (CPU).
// Traffic and bound: forward reads and writes each element once, backward reads two and writes one; bound by memory.
// Still slow because: it is a pass over memory of its own: fused into the kernel before it, it would cost nothing.

#include "kernels/relu/relu.h"

#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::relu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class T>
__global__ void relu_forward_flat_kernel(const T* x, T* y, std::size_t elements) {
  for (std::size_t i : simt::grid_range(elements)) {
    const float value = lib::to_f32(x[i]);
    y[i] = lib::from_f32<T>(value < 0.0f ? 0.0f : value);  // not max(): NaN must stay
  }
}

template <class T>
__global__ void relu_backward_flat_kernel(const T* y, const T* dy, T* dx, std::size_t elements) {
  for (std::size_t i : simt::grid_range(elements))
    dx[i] = lib::from_f32<T>(lib::to_f32(y[i]) > 0.0f ? lib::to_f32(dy[i]) : 0.0f);
}

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  lib::with_element(args.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    simt::launch_flat<relu_forward_flat_kernel<T>>(stream, simt::grid_for(stream, args.elements),
                                                   static_cast<const T*>(args.x), static_cast<T*>(args.y),
                                                   args.elements);
  });
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  lib::with_element(args.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    simt::launch_flat<relu_backward_flat_kernel<T>>(stream, simt::grid_for(stream, args.elements),
                                                    static_cast<const T*>(args.y), static_cast<const T*>(args.dy),
                                                    static_cast<T*>(args.dx), args.elements);
  });
}

}  // namespace

Variant flat() { return {"flat", forward, backward, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::relu
