// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/lib/variant.h"

/// Operations on arrays, element by element. Common to all:
///
/// Order     enqueued on the stream; returns at once. Zero elements: nothing happens.
/// Errors    InvalidArgument if a pointer is null, or if types or overlap are not as said.
/// Numerics  deterministic.
/// Example   tests/kernels/ops/elementwise_test.cpp
namespace gradring::kernels::fill {

/// Sets every element: y[i] = value.
///
/// Types     any DType; `value` is rounded to the nearest of a floating type, and must fit an integer type.
/// Numerics  exact but for the rounding of `value`.
/// Cost      writes elements * size_of(dtype) bytes.
struct Args {
  DType dtype = DType::f32;
  void* y = nullptr;
  std::size_t elements = 0;
  double value = 0;
};

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::fill

namespace gradring::kernels::scale {

/// Multiplies by a constant: y[i] = factor * x[i].
///
/// Types     f32, f16 or bf16, equal for x and y; the product is taken in f32 and rounded once.
/// Aliasing  y may be x; a partial overlap is not allowed.
/// Numerics  one rounding per element.
/// Cost      reads and writes elements * size_of(dtype) bytes.
struct Args {
  DType dtype = DType::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t elements = 0;
  float factor = 1;
};

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::scale

namespace gradring::kernels::accumulate {

/// Adds one array to another: y[i] += x[i].
///
/// Types     f32, f16 or bf16, whose sum is taken in f32 and rounded once; i32 or i64, which wrap around; equal for x
///           and y.
/// Aliasing  x may be y (which doubles it); a partial overlap is not allowed.
/// Numerics  at most one rounding per element.
/// Cost      reads 2 and writes 1 times elements * size_of(dtype) bytes.
struct Args {
  DType dtype = DType::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t elements = 0;
};

/// Whether arrays of this type can be added.
bool can_add(DType dtype);

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::accumulate

namespace gradring::kernels::cast {

/// Copies with a change of type: y[i] = to(x[i]).
///
/// Types     from and to: f32, f16 or bf16, in any combination.
/// Aliasing  x and y must not overlap.
/// Numerics  rounds to nearest, ties to even; overflow gives infinity; NaN stays NaN.
/// Cost      reads elements * size_of(from), writes elements * size_of(to) bytes.
struct Args {
  DType from = DType::f32;
  DType to = DType::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t elements = 0;
};

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::cast

namespace gradring::kernels::relu {

/// Rectifier: y[i] = max(x[i], 0); NaN stays NaN, as in PyTorch.
///
/// Types     f32, f16 or bf16, equal for x and y.
/// Aliasing  y may be x.
/// Numerics  exact.
/// Cost      reads and writes elements * size_of(dtype) bytes.
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

}  // namespace gradring::kernels::relu
