// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels::relu {

/// Rectifier: y[i] = max(x[i], 0); NaN stays NaN, as in PyTorch.
///
/// Types     f32, f16 or bf16, equal for x and y.
/// Aliasing  y may be x.
/// Order     enqueued on the stream; returns at once. Zero elements: nothing happens.
/// Errors    InvalidArgument if a pointer is null or the type is none of the three.
/// Numerics  exact.
/// Cost      reads and writes elements * size_of(dtype) bytes.
/// Example   tests/kernels/relu/relu_test.cpp
struct ForwardArgs {
  DType dtype = DType::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t elements = 0;
};

/// Its gradient, from the output alone: dx[i] = y[i] > 0 ? dy[i] : 0.
///
/// Aliasing  dx may be dy, or y.
/// Numerics  exact; 0 at y = 0 (PyTorch's choice of the subgradient), and where y is NaN.
/// Cost      reads 2 and writes 1 times elements * size_of(dtype) bytes.
struct BackwardArgs {
  DType dtype = DType::f32;
  const void* y = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
  std::size_t elements = 0;
};

/// Errors    InvalidArgument if `args` break the contract above. Every variant calls it before it launches.
void check_args(const ForwardArgs& args);
void check_args(const BackwardArgs& args);

/// The truth: plain loops on the host, sums in double, run before the call returns.
namespace reference {
void forward(const ForwardArgs& args);
void backward(const BackwardArgs& args);
}  // namespace reference

/// One implementation in the table.
struct Variant {
  std::string_view name;
  void (*forward)(Stream&, const ForwardArgs&);
  void (*backward)(Stream&, const BackwardArgs&);
  bool (*supports)(const Device&, DType);
};

inline namespace GRADRING_KERNEL_COPY {
/// The ladder, simplest first; never empty. One table per copy of the kernel text (see kernels/README.md).
std::span<const Variant> variants();
}  // namespace GRADRING_KERNEL_COPY

}  // namespace gradring::kernels::relu
