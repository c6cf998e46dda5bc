// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/runtime/dtype.h"

namespace gradring::comm {

/// to[i] = to[i] + from[i], for i in [0, elements).
///
/// Types     f32, i32 and i64 in their type (integers wrap around); f16 and bf16 added in f32, then rounded to nearest
///           even.
/// Aliasing  none.
/// Errors    InvalidArgument if the type has no sum (u8).
/// Cost      reads both, writes one; vectorised by the compiler.
void add_into(std::byte* to, const std::byte* from, std::size_t elements, kernels::DType dtype);

/// Whether add_into can add elements of this type.
bool has_sum(kernels::DType dtype);

}  // namespace gradring::comm
