// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/simulated_gpu/units/element.h"
#include "kernels/simulated_gpu/units/mma.h"
#include "kernels/simulated_gpu/units/product.h"

namespace gradring::simulated_gpu {

/// The types of C and D.
enum class SumType : std::uint8_t { f16, f32, f64, s32 };

/// mma.sync.aligned.<rows>n8k<k>.row.col of all types but those that mma_m16n8 has.
struct MmaShape {
  int rows = 16;  ///< m: 8 or 16
  int k = 0;
  Element a = Element::f16, b = Element::f16;
  SumType sum = SumType::f32;
  bool saturates = false;  ///< .satfinite: sums of s32 are clamped
};

/// Registers of a lane: 32 bits each, of f64 64.
constexpr int registers_of_a(const MmaShape& shape) {
  return shape.a == Element::f64 ? shape.rows * shape.k / kLanes : shape.rows * shape.k * bits_of(shape.a) / 1024;
}
constexpr int registers_of_b(const MmaShape& shape) {
  return shape.b == Element::f64 ? 8 * shape.k / kLanes : 8 * shape.k * bits_of(shape.b) / 1024;
}
constexpr int registers_of_sum(const MmaShape& shape) {
  return shape.rows * 8 / kLanes / (shape.sum == SumType::f16 ? 2 : 1);
}

/// D = A B + C, not of f64.
///
/// Aliasing  A row of d may be a row of a, b or c.
/// Numerics  Sums of f32: multiply_add's; of f16: the same, and rounded to f16 once, at the end; of s32: exact, modulo
///           2^32 or clamped. PTX ISA leaves the precision of f16 sums open.
/// Source    PTX ISA 9.0: 9.7.14.5.14 mma; the fragments as element.h states.
void mma_of_types(const MmaShape& shape, std::span<const ConstRow> a, std::span<const ConstRow> b,
                  std::span<const ConstRow> c, std::span<const Row> d);

/// The same of f64. Products are fused with their sums, one by one in the order of k, rounded to nearest even.
void mma_f64(int rows, int k, std::span<const double* const> a, std::span<const double* const> b,
             std::span<const double* const> c, std::span<double* const> d);

/// Rows of f32 from rows of pairs of f16, and back. Row 2 i and 2 i + 1 are the lower and upper halves of pairs[i].
void unpack_sums(std::span<const ConstRow> pairs, std::span<const Row> f32);
void pack_sums(std::span<const Row> f32, std::span<const Row> pairs);

/// A and B of f8, tf32, s8, u8 from registers or from lines of shared memory, for products of 16 rows by `inner`.
///
/// `k0`: the first column of A that is read; columns beyond the matrix are not touched.
void read_left(Element element, int k, std::span<const ConstRow> registers, int k0, int inner, LeftMatrix& a);

}  // namespace gradring::simulated_gpu
