// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "kernels/simulated_gpu/units/mma.h"
#include "kernels/simulated_gpu/units/mma_types.h"

namespace gradring::simulated_gpu {

// wmma of all shapes and types but m16n16k16 of f16 and bf16 with f32 sums, which mma.h has. How a matrix lies in
// its fragment is left to the implementation. Here:
//
// A and B      the lines of the matrix as it lies in memory, one behind the other, in 32 equal parts, one for each
//              lane.
//              f16 has as many registers as m16n16k16 needs twice: they repeat.
// C and D      m16n16: as position_in_accumulators states; else 32 equal parts of the rows, one behind the other.

struct WmmaShape {
  int m = 16, n = 16, k = 16;
  Element element = Element::f16;
  SumType sum = SumType::f32;
  bool saturates = false;
};

/// Lines of a matrix in memory, and how long they are.
struct WmmaLines {
  int count = 0;
  int elements = 0;  ///< of a line
  int bits = 0;      ///< of an element

  int bytes() const { return elements * bits / 8; }
};

enum class WmmaMatrix : std::uint8_t { a, b, sum };
WmmaLines lines_of(const WmmaShape& shape, WmmaMatrix matrix, MatrixLayout layout);
/// Registers of a lane: 32 bits each, of f64 64.
int registers_of(const WmmaShape& shape, WmmaMatrix matrix);

/// A register of all lanes: 32 values of 4 bytes, of f64 8.
using WideRow = std::byte*;
using ConstWideRow = const std::byte*;

/// wmma.load.a, wmma.load.b
void load_fragment(const WmmaLines& shape, std::span<const std::byte* const> lines, std::size_t register_bytes,
                   std::span<const WideRow> registers);
/// wmma.load.c, wmma.store.d
void load_sums(const WmmaShape& shape, MatrixLayout layout, std::span<const std::byte* const> lines,
               std::span<const WideRow> registers);
void store_sums(const WmmaShape& shape, MatrixLayout layout, std::span<const ConstWideRow> registers,
                std::span<std::byte* const> lines);

/// wmma.mma: D = A B + C.
///
/// Aliasing  A row of d may be a row of a, b or c.
/// Numerics  mma_of_types's and mma_f64's.
/// Source    PTX ISA 9.0: 9.7.14.4.5 wmma.mma.
void wmma_of_types(const WmmaShape& shape, MatrixLayout layout_a, MatrixLayout layout_b,
                   std::span<const ConstWideRow> a, std::span<const ConstWideRow> b, std::span<const ConstWideRow> c,
                   std::span<const WideRow> d);

}  // namespace gradring::simulated_gpu
