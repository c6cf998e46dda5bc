// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::simt {

/// A place in a tile.
struct Place {
  int row, column;
};

// The tiles of mma.sync.m16n8k16 with 16-bit inputs, as the 32 lanes of a warp hold them: where the i-th element of a
// lane's part lies. Two elements of a or b make a register, the first in its lower half.
// Source: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".

/// a, [16 rows, 16 inner]: 8 elements a lane.
constexpr Place mma_place_in_a(int lane, int i) { return {lane / 4 + i / 2 % 2 * 8, lane % 4 * 2 + i % 2 + i / 4 * 8}; }

/// b, [16 inner, 8 columns]: 4 elements a lane.
constexpr Place mma_place_in_b(int lane, int i) { return {lane % 4 * 2 + i % 2 + i / 2 * 8, lane / 4}; }

/// c, [16 rows, 8 columns]: 4 numbers a lane, two and two of them side by side.
constexpr Place mma_place_in_c(int lane, int i) { return {lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2}; }

// The four 8 x 8 matrices of a 16 x 16 tile, in the order in which ldmatrix .x4 fills registers: which row of which
// matrix lane l points at, as the place of its first element.

/// 0 top left, 1 below it, 2 top right, 3 below that.
constexpr Place matrices_down(int lane) { return {lane % 16, lane / 16 * 8}; }

/// 0 top left, 1 at its right, 2 bottom left, 3 at its right.
constexpr Place matrices_across(int lane) { return {lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8}; }

}  // namespace gradring::simt
