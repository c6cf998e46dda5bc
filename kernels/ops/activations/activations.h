// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/lib/variant.h"

/// Smooth activations, element by element. Common to both:
///
/// Types     f32, f16 or bf16, equal for all arrays; computed in f32 and rounded once.
/// Aliasing  y may be x, dx may be dy or x; a partial overlap is not allowed.
/// Order     enqueued on the stream; returns at once. Zero elements: nothing happens.
/// Errors    InvalidArgument if a pointer is null, or if types or overlap are not as said.
/// Numerics  deterministic. NaN stays NaN; minus infinity gives a result that is not finite, as in PyTorch.
/// Cost      forward reads and writes, backward reads 2 and writes 1 times elements * size_of(dtype) bytes.
/// Example   tests/kernels/ops/activations_test.cpp
namespace gradring::kernels::gelu {

enum class Approximation : std::uint8_t {
  none,  ///< y = x * P(x), P the distribution function of the normal distribution, (1 + erf(x / sqrt(2))) / 2
  tanh   ///< y = x * (1 + tanh(u)) / 2, u = sqrt(2 / pi) * (x + 0.044715 x^3)
};

/// Gaussian error linear unit.
///
/// Numerics  error below 2^-21 * |x|, and one rounding.
/// Source    Hendrycks and Gimpel, "Gaussian error linear units", 2016 (arXiv 1606.08415); torch.nn.GELU.
struct ForwardArgs {
  DType dtype = DType::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t elements = 0;
  Approximation approximation = Approximation::none;
};

/// Its gradient, from the input: dx = dy * dy/dx(x).
///
/// Numerics  error below 2^-20 * (1 + |x|) * |dy|, and one rounding.
struct BackwardArgs {
  DType dtype = DType::f32;
  const void* x = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
  std::size_t elements = 0;
  Approximation approximation = Approximation::none;
};

void check_args(const ForwardArgs& args);
void check_args(const BackwardArgs& args);
void reference_forward(const ForwardArgs& args);
void reference_backward(const BackwardArgs& args);

struct Variant {
  std::string_view name;
  void (*forward)(Stream&, const ForwardArgs&);
  void (*backward)(Stream&, const BackwardArgs&);
  bool (*supports)(const Device&, DType);
};

}  // namespace gradring::kernels::gelu

namespace gradring::kernels::silu {

/// Sigmoid linear unit (swish): y = x * s(x), s(x) = 1 / (1 + exp(-x)).
///
/// Numerics  error below 2^-21 * |x|, and one rounding.
/// Source    torch.nn.SiLU.
struct ForwardArgs {
  DType dtype = DType::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t elements = 0;
};

/// Its gradient, from the input: dx = dy * s(x) * (1 + x * (1 - s(x))).
///
/// Numerics  error below 2^-20 * (1 + |x|) * |dy|, and one rounding.
struct BackwardArgs {
  DType dtype = DType::f32;
  const void* x = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
  std::size_t elements = 0;
};

void check_args(const ForwardArgs& args);
void check_args(const BackwardArgs& args);
void reference_forward(const ForwardArgs& args);
void reference_backward(const BackwardArgs& args);

struct Variant {
  std::string_view name;
  void (*forward)(Stream&, const ForwardArgs&);
  void (*backward)(Stream&, const BackwardArgs&);
  bool (*supports)(const Device&, DType);
};

}  // namespace gradring::kernels::silu
