// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/variant.h"

namespace gradring::kernels::peak {

inline constexpr std::int64_t kRows = 16;
inline constexpr std::int64_t kColumns = 8;
inline constexpr std::int64_t kK = 16;

/// Nothing but arithmetic: adds the product of two small matrices to every tile of y, `rounds` times over,
///   y[t] += a b.
/// The matrices lie in registers, or in shared memory where that is as fast, all the while; so the time is that of the
/// multiply-adds, and the arithmetic that they come to a second is the most that kernels written this way can do.
/// kernels/bench/gpu_machine.cpp measures it.
///
/// Shapes    a: [16, 16], b: [16, 8], y: [tiles, 16, 8], row-major, contiguous; tiles, rounds >= 0.
/// Types     a and b: f32, f16 or bf16, equal; y: f32; sums in f32.
/// Aliasing  nothing overlaps.
/// Order     enqueued on the stream; returns at once. No tiles: nothing happens.
/// Errors    InvalidArgument if a count is negative, a pointer null, or the type none of the three.
/// Numerics  deterministic; of |a|, |b| <= 1, error below 32 rounds * 2^-24 * (|y| + 16), y before or after, whichever
///           is larger. (An addition on tensor cores may cut off what it cannot hold.)
/// Cost      4096 * tiles * rounds floating-point operations; reads and writes y once.
/// Example   tests/kernels/ops/peak_test.cpp
struct Args {
  DType dtype = DType::f32;
  std::int64_t tiles = 0;
  std::int64_t rounds = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  float* y = nullptr;
};

/// Floating-point operations of one call.
constexpr double flops(const Args& args) {
  return 2.0 * kRows * kColumns * kK * static_cast<double>(args.tiles) * static_cast<double>(args.rounds);
}

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::peak
