// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "kernels/simulated_gpu/units/fragment.h"

namespace gradring::simulated_gpu {

/// Bytes of a row of the 8 x 8 matrices of 16-bit elements that ldmatrix and stmatrix move; its address must be a
/// multiple of it.
inline constexpr std::size_t kMatrixRowBytes = 16;

/// ldmatrix.sync.aligned.m8n8.x<d.size()>{.trans}.b16.
///
/// Shapes    d: 1, 2 or 4 registers, one for each matrix; rows: 8 d.size() addresses of kMatrixRowBytes, that lane i
///           gives being row i % 8 of matrix i / 8.
/// Layout    Lane l receives elements 2 (l % 4) and the next of row l / 4; with `transposes` of column l / 4.
/// Source    PTX ISA 9.0: 9.7.14.5.15 ldmatrix.
void load_matrices(std::span<const std::byte* const> rows, bool transposes, std::span<const Row> d);

/// stmatrix.sync.aligned.m8n8.x<s.size()>{.trans}.b16: the inverse of load_matrices.
///
/// Source    PTX ISA 9.0: 9.7.14.5.16 stmatrix.
void store_matrices(std::span<const ConstRow> s, bool transposes, std::span<std::byte* const> rows);

}  // namespace gradring::simulated_gpu
