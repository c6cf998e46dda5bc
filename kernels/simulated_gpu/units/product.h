// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/simulated_gpu/units/fragment.h"
#include "kernels/simulated_gpu/units/half.h"

namespace gradring::simulated_gpu {

/// The most columns of B: wgmma's m64n256k16.
inline constexpr int kMostColumns = 256;

/// A of a product: 16 rows (m) of 16 (k), as the lanes need it: for each k and each half of the rows, lane l has the
/// element of row l / 4 of that half.
struct alignas(64) LeftMatrix {
  float values[16][2][kLanes];
};

/// B of a product: 16 rows (k) of up to 256 columns (n).
struct alignas(64) RightMatrix {
  float values[16][kMostColumns];
};

/// A from its elements, row by row.
void set_elements(const float (&elements)[16][16], LeftMatrix& a);

/// A from its fragment: 2 (inner 8) or 4 (inner 16) registers, as position_in_a states.
void read_fragment(Half type, std::span<const ConstRow> registers, LeftMatrix& a);

/// The first eight columns of B from a fragment of mma: 1 (inner 8) or 2 (inner 16) registers, as position_in_b states.
void read_fragment(Half type, std::span<const ConstRow> registers, RightMatrix& b);

/// D = A B + D, for one warp.
///
/// Shapes    A: 16 x inner; B: inner x 2 d.size(); D: 16 x 2 d.size(), in registers as position_in_accumulators states.
///           inner is 8 or 16, d.size() a multiple of 4. Unless `keeps`, D is zero before.
/// Numerics  An element begins with D's and takes up its products one by one in the order of k, in f32, each rounded to
///           nearest even. Products of f16 are exact in f32, those of bf16 are as well within f32's range. PTX ISA
///           leaves the order and the rounding of these sums open: a tensor core aligns 4 to 16 products and D to their
///           greatest exponent, adds them at once and truncates. So results differ from a GPU's in the last bits, and a
///           sum that cancels may by more. NaN is 0x7FFFFFFF.
/// Source    PTX ISA 9.0: 9.7.14.5.14 mma, 9.7.15.5.2 wgmma.mma_async; on hardware: Fasi, Higham, Mikaitis, Pranesh,
///           "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7, 2021.
void multiply_add(const LeftMatrix& a, const RightMatrix& b, int inner, bool keeps, std::span<const Row> d);

/// The loops of product.h and half.h, compiled once for each level of the instruction set (kernels/lib/level_copies.h).
struct UnitLoops {
  void (*set_elements)(const float (&elements)[16][16], LeftMatrix& a);
  void (*read_left)(Half type, std::span<const ConstRow> registers, LeftMatrix& a);
  void (*read_right)(Half type, std::span<const ConstRow> registers, RightMatrix& b);
  void (*multiply_add)(const LeftMatrix& a, const RightMatrix& b, int inner, bool keeps, std::span<const Row> d);
  void (*to_f32)(Half type, const std::uint16_t* from, float* to, std::size_t elements);
  void (*to_half)(Half type, const float* from, std::uint16_t* to, std::size_t elements);
};

}  // namespace gradring::simulated_gpu
