// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/simt.h"

/// A strip is a few neighbouring columns that one thread computes together, in registers: each load of the other operand
/// then serves all of them, and their own loads are contiguous.
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Calls body(j) for j in [0, count), count <= kWidth. Every j is a constant after unrolling, so that an array indexed by
/// it stays in registers; full strips, and full eighths of the last one, are loops without conditions that vectorise.
template <int kWidth, class Body>
__device__ inline void for_strip(int count, Body body) {
  constexpr int kPart = 8;
  static_assert(kWidth % kPart == 0);
  if (count == kWidth) {
    for (int j = 0; j < kWidth; ++j) body(j);
    return;
  }
  SIMT_UNROLL
  for (int part = 0; part < kWidth; part += kPart) {
    if (count >= part + kPart)
      for (int j = 0; j < kPart; ++j) body(part + j);
    else
      for (int j = 0; j < kPart; ++j)
        if (part + j < count) body(part + j);
  }
}

/// How many strips cover `columns`.
constexpr int strips(std::int64_t columns, int width) { return static_cast<int>((columns + width - 1) / width); }

/// The width of strip number `strip`: `width`, but less for the last one.
__device__ inline int strip_width(std::int64_t columns, int strip, int width) {
  const std::int64_t left = columns - std::int64_t{strip} * width;
  return left < width ? static_cast<int>(left) : width;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
