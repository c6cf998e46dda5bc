// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels::fill {

/// Sets every element: y[i] = value.
///
/// Types     any DType; `value` is rounded to the nearest of a floating type, and must fit an integer type.
/// Order     enqueued on the stream; returns at once. Zero elements: nothing happens.
/// Errors    InvalidArgument if y is null.
/// Numerics  exact but for the rounding of `value`.
/// Cost      writes elements * size_of(dtype) bytes.
/// Example   tests/kernels/fill/fill_test.cpp
struct Args {
  DType dtype = DType::f32;
  void* y = nullptr;
  std::size_t elements = 0;
  double value = 0;
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

}  // namespace gradring::kernels::fill
