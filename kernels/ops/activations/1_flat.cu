// SPDX-License-Identifier: Apache-2.0
// gelu and silu: loops over elements.
// Idea: the functions have no branches (functions.cuh): one text is vector code on a CPU and one path for a warp. The
//   backward pass computes them again from x: reading what the forward pass could keep would take longer.
// Mapping: grid-stride, one element per thread and step (GPU); one contiguous run per thread (CPU).
// Traffic and bound: each array is read or written once; some 30 instructions an element. In f32 bound by memory, in 16
//   bits by issuing them.
// Still slow because: one element per access, and its own pass: the kernel that makes x has it in a register.

#include <type_traits>

#include "kernels/lib/element.h"
#include "kernels/ops/activations/activations.h"
#include "kernels/ops/activations/functions.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::activations {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// A function has value(x) and slope(x).
struct Gelu {
  __device__ static float value(float x) { return x * Normal(x).distribution; }
  __device__ static float slope(float x) {
    const Normal normal(x);
    return normal.distribution + x * normal.density;
  }
};

struct Silu {
  __device__ static float value(float x) { return x * Sigmoid(x).value; }
  __device__ static float slope(float x) {
    const Sigmoid s(x);
    return s.value + x * (s.value * s.rest);
  }
};

template <class T, class Function>
__global__ void activation_forward_flat_kernel(const T* x, T* y, std::size_t elements) {
  for (std::size_t i : simt::grid_range(elements)) y[i] = lib::from_f32<T>(Function::value(lib::to_f32(x[i])));
}

template <class T, class Function>
__global__ void activation_backward_flat_kernel(const T* x, const T* dy, T* dx, std::size_t elements) {
  for (std::size_t i : simt::grid_range(elements))
    dx[i] = lib::from_f32<T>(lib::to_f32(dy[i]) * Function::slope(lib::to_f32(x[i])));
}

template <class Function>
void run_forward(Stream& stream, const ForwardArgs& args) {
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<activation_forward_flat_kernel<T, Function>>(stream, simt::grid_for(stream, args.elements),
                                                                   static_cast<const T*>(args.x),
                                                                   static_cast<T*>(args.y), args.elements);
  });
}

template <class Function>
void run_backward(Stream& stream, const BackwardArgs& args) {
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<activation_backward_flat_kernel<T, Function>>(
        stream, simt::grid_for(stream, args.elements), static_cast<const T*>(args.x), static_cast<const T*>(args.dy),
        static_cast<T*>(args.dx), args.elements);
  });
}

}  // namespace
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::activations

namespace gradring::kernels::gelu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  activations::run_forward<activations::Gelu>(stream, args);
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  activations::run_backward<activations::Gelu>(stream, args);
}

}  // namespace

Variant flat() { return {"flat", forward, backward, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gelu

namespace gradring::kernels::silu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  activations::run_forward<activations::Silu>(stream, args);
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  activations::run_backward<activations::Silu>(stream, args);
}

}  // namespace

Variant flat() { return {"flat", forward, backward, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::silu
