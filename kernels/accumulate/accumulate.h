// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels::accumulate {

/// Adds one array to another: y[i] += x[i].
///
/// Types     f32, f16 or bf16, whose sum is taken in f32 and rounded once; i32 or i64, which wrap around; equal for x and y.
/// Aliasing  x may be y (which doubles it); a partial overlap is not allowed.
/// Order     enqueued on the stream; returns at once. Zero elements: nothing happens.
/// Errors    InvalidArgument if a pointer is null or the type is none of these.
/// Numerics  deterministic; at most one rounding per element.
/// Cost      reads 2 and writes 1 times elements * size_of(dtype) bytes.
/// Example   tests/kernels/accumulate/accumulate_test.cpp
struct Args {
  DType dtype = DType::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t elements = 0;
};

/// Whether arrays of this type can be added.
bool can_add(DType dtype);

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

}  // namespace gradring::kernels::accumulate
