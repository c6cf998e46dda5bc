// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/runtime/dtype.h"

/// Arrays of any type as doubles on the host: what the references compute with.
namespace gradring::kernels::lib {

/// Exact for every type but i64 beyond 2^53.
std::vector<double> read_values(DType dtype, const void* from, std::size_t elements);

/// Rounds to the nearest value of a floating type (by way of f32); truncates to an integer type.
void write_values(DType dtype, void* to, std::span<const double> values);

}  // namespace gradring::kernels::lib
