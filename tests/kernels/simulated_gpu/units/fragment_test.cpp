// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/fragment.h"

#include <gtest/gtest.h>

#include <ostream>
#include <sstream>
#include <string>

#include "tests/kernels/simulated_gpu/units/cute_layout.h"

namespace gradring::simulated_gpu {

/// For messages of GoogleTest.
void PrintTo(const Position& position, std::ostream* out) {
  *out << '(' << position.row << ", " << position.column << ')';
}

namespace {

/// The position of an element in a matrix whose columns follow one another, as CUTLASS numbers them.
Position column_major(int index, int rows) { return {.row = index % rows, .column = index / rows}; }

/// Compares with rows of a figure of the PTX ISA: "T0:a0 T0:a1 T1:a0 ..." are the columns of `row`. All lanes and
/// elements of other rows follow from the next four lanes, T4 for T0.
template <class PositionOf>
void expect_row(const PositionOf& position_of, int row, const std::string& figure) {
  std::istringstream entries(figure);
  std::string entry;
  for (int column = 0; entries >> entry; ++column) {
    const std::size_t colon = entry.find(':');
    const int lane = std::stoi(entry.substr(1, colon - 1));
    const int element = std::stoi(entry.substr(colon + 2));
    EXPECT_EQ(position_of(lane, element), (Position{.row = row, .column = column})) << entry;
  }
}

// PTX ISA 9.0, 9.7.14.5.8, the figure of matrix A of m16n8k16, .f16 and .bf16.
TEST(SimulatedFragment, HoldsAAsFigureShows) {
  expect_row(position_in_a, 0,
             "T0:a0 T0:a1 T1:a0 T1:a1 T2:a0 T2:a1 T3:a0 T3:a1 T0:a4 T0:a5 T1:a4 T1:a5 T2:a4 T2:a5 T3:a4 T3:a5");
  expect_row(position_in_a, 1,
             "T4:a0 T4:a1 T5:a0 T5:a1 T6:a0 T6:a1 T7:a0 T7:a1 T4:a4 T4:a5 T5:a4 T5:a5 T6:a4 T6:a5 T7:a4 T7:a5");
  expect_row(position_in_a, 7,
             "T28:a0 T28:a1 T29:a0 T29:a1 T30:a0 T30:a1 T31:a0 T31:a1 T28:a4 T28:a5 T29:a4 T29:a5 T30:a4 T30:a5 T31:a4 "
             "T31:a5");
  expect_row(position_in_a, 8,
             "T0:a2 T0:a3 T1:a2 T1:a3 T2:a2 T2:a3 T3:a2 T3:a3 T0:a6 T0:a7 T1:a6 T1:a7 T2:a6 T2:a7 T3:a6 T3:a7");
  expect_row(position_in_a, 15,
             "T28:a2 T28:a3 T29:a2 T29:a3 T30:a2 T30:a3 T31:a2 T31:a3 T28:a6 T28:a7 T29:a6 T29:a7 T30:a6 T30:a7 T31:a6 "
             "T31:a7");
}

// The same section, the figure of matrix B: rows are k.
TEST(SimulatedFragment, HoldsBAsFigureShows) {
  const std::string lanes_of_0[] = {"T0:b0 T4:b0 T8:b0 T12:b0 T16:b0 T20:b0 T24:b0 T28:b0",
                                    "T0:b1 T4:b1 T8:b1 T12:b1 T16:b1 T20:b1 T24:b1 T28:b1"};
  expect_row(position_in_b, 0, lanes_of_0[0]);
  expect_row(position_in_b, 1, lanes_of_0[1]);
  expect_row(position_in_b, 2, "T1:b0 T5:b0 T9:b0 T13:b0 T17:b0 T21:b0 T25:b0 T29:b0");
  expect_row(position_in_b, 7, "T3:b1 T7:b1 T11:b1 T15:b1 T19:b1 T23:b1 T27:b1 T31:b1");
  expect_row(position_in_b, 8, "T0:b2 T4:b2 T8:b2 T12:b2 T16:b2 T20:b2 T24:b2 T28:b2");
  expect_row(position_in_b, 15, "T3:b3 T7:b3 T11:b3 T15:b3 T19:b3 T23:b3 T27:b3 T31:b3");
}

// The same section, the figure of C and D; 9.7.15.5.1.1.1, the figure of D of m64nNk16, goes on to the right by eights.
TEST(SimulatedFragment, HoldsAccumulatorsAsFigureShows) {
  expect_row(position_in_accumulators, 0,
             "T0:c0 T0:c1 T1:c0 T1:c1 T2:c0 T2:c1 T3:c0 T3:c1 T0:d4 T0:d5 T1:d4 T1:d5 T2:d4 T2:d5 T3:d4 T3:d5 T0:d8");
  expect_row(position_in_accumulators, 8,
             "T0:c2 T0:c3 T1:c2 T1:c3 T2:c2 T2:c3 T3:c2 T3:c3 T0:d6 T0:d7 T1:d6 T1:d7 T2:d6 T2:d7 T3:d6 T3:d7 T0:d10");
  expect_row(position_in_accumulators, 15, "T28:c2 T28:c3 T29:c2 T29:c3 T30:c2 T30:c3 T31:c2 T31:c3 T28:d6");
}

// CUTLASS 4.2, include/cute/atom/mma_traits_sm80.hpp and mma_traits_sm90_gmma.hpp: (thread, value) -> column-major
// index.
TEST(SimulatedFragment, AgreesWithCutlass) {
  const CuteLayout a_m16n8k16({4, 8, 2, 2, 2}, {32, 1, 16, 8, 128});
  const CuteLayout b_m16n8k16({4, 8, 2, 2}, {16, 1, 8, 64});
  const CuteLayout sm80_16x8_row({4, 8, 2, 2}, {32, 1, 16, 8});  // A of m16n8k8; C
  const CuteLayout sm80_8x8_row({4, 8, 2}, {16, 1, 8});          // B of m16n8k8
  const CuteLayout c_64x256({4, 8, 4, 2, 2, 32}, {128, 1, 16, 64, 8, 512});
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 8; ++i) EXPECT_EQ(position_in_a(lane, i), column_major(a_m16n8k16(lane + 32 * i), 16));
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(position_in_a(lane, i), column_major(sm80_16x8_row(lane + 32 * i), 16));
      EXPECT_EQ(position_in_accumulators(lane, i), column_major(sm80_16x8_row(lane + 32 * i), 16));
      const Position b = column_major(b_m16n8k16(lane + 32 * i), 8);  // CUTLASS's B is n x k
      EXPECT_EQ(position_in_b(lane, i), (Position{.row = b.column, .column = b.row}));
    }
    for (int i = 0; i < 2; ++i) {
      const Position b = column_major(sm80_8x8_row(lane + 32 * i), 8);
      EXPECT_EQ(position_in_b(lane, i), (Position{.row = b.column, .column = b.row}));
    }
    for (int warp = 0; warp < 4; ++warp) {
      for (int i = 0; i < 128; ++i) {
        const Position d = position_in_accumulators(lane, i);
        const Position expected = column_major(c_64x256(32 * warp + lane + 128 * i), 64);
        EXPECT_EQ((Position{.row = 16 * warp + d.row, .column = d.column}), expected);
      }
      for (int i = 0; i < 8; ++i) {  // ALayout_64x16 = CLayout_64x16
        const Position a = position_in_a(lane, i);
        const Position expected = column_major(c_64x256(32 * warp + lane + 128 * i), 64);
        EXPECT_EQ((Position{.row = 16 * warp + a.row, .column = a.column}), expected);
      }
    }
  }
}

}  // namespace
}  // namespace gradring::simulated_gpu
