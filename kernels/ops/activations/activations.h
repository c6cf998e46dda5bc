// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/lib/variant.h"

namespace gradring::kernels {

/// Smooth activations, element by element: y = f(x).
///
/// Types     f32, f16 or bf16, equal for all arrays; computed in f32 and rounded once.
/// Aliasing  y may be x, dx may be dy or x; a partial overlap is not allowed.
/// Order     enqueued on the stream; returns at once. Zero elements: nothing happens.
/// Errors    InvalidArgument if a pointer is null, or if types or overlap are not as said.
/// Numerics  deterministic; error of y below 2^-21 * |x|, and one rounding. NaN stays NaN; minus infinity gives a result
///           that is not finite, as in PyTorch.
/// Cost      forward reads and writes, backward reads 2 and writes 1 times elements * size_of(dtype) bytes.
/// Example   tests/kernels/ops/activations_test.cpp
namespace activations {

struct ForwardArgs {
  DType dtype = DType::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t elements = 0;
};

/// The gradient, from the input: dx = dy * f'(x).
///
/// Numerics  error below 2^-20 * (1 + |x|) * |dy|, and one rounding.
struct BackwardArgs {
  DType dtype = DType::f32;
  const void* x = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
  std::size_t elements = 0;
};

struct Variant {
  std::string_view name;
  void (*forward)(Stream&, const ForwardArgs&);
  void (*backward)(Stream&, const BackwardArgs&);
  bool (*supports)(const Device&, DType);
};

}  // namespace activations

/// Gaussian error linear unit: y = x * P(x), P the distribution function of the normal distribution,
/// (1 + erf(x / sqrt(2))) / 2.
///
/// Source    Hendrycks and Gimpel, "Gaussian error linear units", 2016 (arXiv 1606.08415); torch.nn.GELU.
namespace gelu {

using activations::BackwardArgs, activations::ForwardArgs, activations::Variant;

void check_args(const ForwardArgs& args);
void check_args(const BackwardArgs& args);
void reference_forward(const ForwardArgs& args);
void reference_backward(const BackwardArgs& args);

}  // namespace gelu

/// Sigmoid linear unit (swish): y = x * s(x), s(x) = 1 / (1 + exp(-x)).
///
/// Source    torch.nn.SiLU.
namespace silu {

using activations::BackwardArgs, activations::ForwardArgs, activations::Variant;

void check_args(const ForwardArgs& args);
void check_args(const BackwardArgs& args);
void reference_forward(const ForwardArgs& args);
void reference_backward(const BackwardArgs& args);

}  // namespace silu
}  // namespace gradring::kernels
