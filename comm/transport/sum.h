// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "kernels/runtime/dtype.h"

namespace gradring::comm {

/// to[i] = to[i] + from[i], for i in [0, elements).
///
/// Types     f32, i32 and i64 in their type (integers wrap around); f16 and bf16 added in f32, then rounded to nearest
///           even.
/// Aliasing  none.
/// Errors    InvalidArgument if the type has no sum (u8).
/// Cost      reads both, writes one; vectorized by the compiler.
void add_into(std::byte* to, const std::byte* from, std::size_t elements, kernels::DType dtype);

/// mine[i] = others[k][i] = ((others[0][i] + others[1][i]) + ...) + mine[i], for all k. Without others a no-op.
///
/// Types     as add_into; f16 and bf16 are rounded after every addition.
/// Aliasing  none.
/// Errors    as add_into.
/// Cost      reads and writes each once.
void sum_into_all(std::byte* mine, std::span<std::byte* const> others, std::size_t elements, kernels::DType dtype);

/// The loops of add_into and sum_into_all, compiled once for each level of the instruction set
/// (kernels/lib/level_copies.h) in sum_loops.cpp.
struct SumLoops {
  void (*add_into)(std::byte* to, const std::byte* from, std::size_t elements, kernels::DType dtype);
  void (*sum_into_all)(std::byte* mine, std::span<std::byte* const> others, std::size_t elements, kernels::DType dtype);
};

/// Whether add_into can add elements of this type.
bool has_sum(kernels::DType dtype);

}  // namespace gradring::comm
