// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/simulated_gpu/units/fragment.h"
#include "kernels/simulated_gpu/units/half.h"

namespace gradring::simulated_gpu {

/// mma.sync.aligned.m16n8k<8 b.size()>.row.col.f32.<type>.<type>.f32: D = A B + C.
///
/// Shapes    k8: 2 registers of A, 1 of B; k16: 4 and 2.
/// Aliasing  A row of d may be a row of a, b or c.
/// Numerics  multiply_add's.
/// Source    PTX ISA 9.0: 9.7.14.5.7, 9.7.14.5.8 (fragments), 9.7.14.5.14 (mma).
void mma_m16n8(Half type, std::span<const ConstRow> a, std::span<const ConstRow> b, const std::array<ConstRow, 4>& c,
               const std::array<Row, 4>& d);

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

// wmma of m16n16k16, f16 or bf16 with f32 accumulators. How a matrix lies in its fragment is left to the implementation
// (PTX ISA 9.0, 9.7.14.4.1 Matrix Fragments for WMMA). Here:
//
// A and B      Lane l holds elements 8 (l % 2) to 8 (l % 2) + 7 of line l / 2 of the matrix as it lies in memory, a
//              line being a row (.row) or a column (.col). So a layout that differs between wmma.load and wmma.mma,
//              which PTX ISA forbids, gives the product of another matrix, as on a GPU. f16 has eight registers for
//              eight elements: the second four repeat the first, so that code that changes all elements of a fragment
//              alike works.
// C and D      as position_in_accumulators states, whatever the layout in memory.

enum class MatrixLayout : std::uint8_t { row, col };

inline constexpr int kWmmaLines = 16;
/// Multiples that PTX ISA 9.0 (9.7.14.4.2, "Address Alignment") wants of the address of a matrix: the bytes of its
/// fragment.
constexpr std::size_t wmma_alignment(Half type) { return type == Half::f16 ? 32 : 16; }
inline constexpr std::size_t kWmmaAccumulatorAlignment = 32;
/// Of the distance of its lines in bytes, as the CUDA C++ Programming Guide (13.0, "Warp Matrix Functions") states it:
/// 8 elements of 16 bits, 4 of f32. PTX ISA's example wants the multiple of the address, which is more for f16 and f32.
inline constexpr std::size_t kWmmaStrideAlignment = 16;

/// wmma.load.a, wmma.load.b: `lines` are the addresses of 32 bytes each; 4 (bf16) or 8 (f16) registers.
///
/// Source    PTX ISA 9.0: 9.7.14.4.3 wmma.load.
void wmma_load(const std::array<const std::byte*, kWmmaLines>& lines, std::span<const Row> registers);

/// wmma.load.c of f32: `lines` are the addresses of 64 bytes each.
void wmma_load_accumulators(MatrixLayout layout, const std::array<const std::byte*, kWmmaLines>& lines,
                            const std::array<Row, 8>& registers);

/// wmma.store.d of f32: `lines` are the addresses of 64 bytes each.
///
/// Source    PTX ISA 9.0: 9.7.14.4.4 wmma.store.
void wmma_store(MatrixLayout layout, const std::array<ConstRow, 8>& registers,
                const std::array<std::byte*, kWmmaLines>& lines);

/// wmma.mma.sync.aligned.<layout_a>.<layout_b>.m16n16k16.f32...f32: D = A B + C.
///
/// Aliasing  A row of d may be a row of a, b or c.
/// Numerics  multiply_add's.
/// Source    PTX ISA 9.0: 9.7.14.4.5 wmma.mma.
void wmma_multiply(Half type, MatrixLayout layout_a, MatrixLayout layout_b, std::span<const ConstRow> a,
                   std::span<const ConstRow> b, const std::array<ConstRow, 8>& c, const std::array<Row, 8>& d);

}  // namespace gradring::simulated_gpu
