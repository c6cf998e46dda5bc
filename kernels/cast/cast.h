// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels::cast {

/// Copies with a change of type: y[i] = to(x[i]).
///
/// Types     from and to: f32, f16 or bf16, in any combination.
/// Aliasing  x and y must not overlap.
/// Order     enqueued on the stream; returns at once. Zero elements: nothing happens.
/// Errors    InvalidArgument if a pointer is null, a type is none of the three, or x and y overlap.
/// Numerics  rounds to nearest, ties to even; overflow gives infinity; NaN stays NaN.
/// Cost      reads elements * size_of(from), writes elements * size_of(to) bytes.
/// Example   tests/kernels/cast/cast_test.cpp
struct Args {
  DType from = DType::f32;
  DType to = DType::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t elements = 0;
};

/// Errors    InvalidArgument if `args` break the contract above. Every variant calls it before it launches.
void check_args(const Args& args);

/// The truth: plain loops on the host, sums in double, run before the call returns.
namespace reference {
void run(const Args& args);
}  // namespace reference

/// One implementation in the table.
struct Variant {
  std::string_view name;
  void (*run)(Stream&, const Args&);
  bool (*supports)(const Device&, DType);
};

inline namespace GRADRING_KERNEL_COPY {
/// The ladder, simplest first; never empty. One table per copy of the kernel text (see kernels/README.md).
std::span<const Variant> variants();
}  // namespace GRADRING_KERNEL_COPY

}  // namespace gradring::kernels::cast
