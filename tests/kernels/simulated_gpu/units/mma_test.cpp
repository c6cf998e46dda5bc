// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/mma.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "tests/kernels/simulated_gpu/units/test_matrix.h"

namespace gradring::simulated_gpu {
namespace {

/// The operands of one product of 16 x 8, in registers.
struct MmaCase {
  Half type;
  TestMatrix a, b, c;
  TestRegisters<4> a_registers;
  TestRegisters<2> b_registers;
  TestRegisters<4> c_registers;
  TestRegisters<4> d_registers;

  explicit MmaCase(Half of)
      : type(of), a(random_integers(16, 16, 1)), b(random_integers(16, 8, 2)), c(random_integers(16, 8, 3)) {
    a_registers.set_halves(type, a, position_in_a);
    b_registers.set_halves(type, b, position_in_b);
    c_registers.set_accumulators(c);
  }
  TestMatrix multiply() {
    mma_m16n8(type, a_registers.in(), b_registers.in(), c_registers.in(), d_registers.out());
    return d_registers.accumulators();
  }
};

TEST(SimulatedMma, MultipliesM16N8K16) {
  for (const Half type : {Half::f16, Half::bf16}) {
    MmaCase product(type);
    EXPECT_EQ(product.multiply(), product_of(product.a, product.b, product.c));
    EXPECT_EQ(product.c_registers.accumulators(), product.c);
  }
}

TEST(SimulatedMma, MultipliesM16N8K8) {
  for (const Half type : {Half::f16, Half::bf16}) {
    const TestMatrix a = random_integers(16, 8, 4);
    const TestMatrix b = random_integers(8, 8, 5);
    const TestMatrix c = random_integers(16, 8, 6);
    TestRegisters<2> a_registers;
    TestRegisters<1> b_registers;
    TestRegisters<4> c_registers;
    TestRegisters<4> d_registers;
    a_registers.set_halves(type, a, position_in_a);
    b_registers.set_halves(type, b, position_in_b);
    c_registers.set_accumulators(c);
    mma_m16n8(type, a_registers.in(), b_registers.in(), c_registers.in(), d_registers.out());
    EXPECT_EQ(d_registers.accumulators(), product_of(a, b, c));
  }
}

TEST(SimulatedMma, WritesResultOverOperands) {
  MmaCase product(Half::f16);
  const TestMatrix expected = product_of(product.a, product.b, product.c);
  // D in the registers of C, in another order, so that each is read before it is written.
  const auto c = product.c_registers.out();
  mma_m16n8(Half::f16, product.a_registers.in(), product.b_registers.in(), product.c_registers.in(),
            {c[2], c[3], c[0], c[1]});
  std::swap(product.c_registers.rows[0], product.c_registers.rows[2]);
  std::swap(product.c_registers.rows[1], product.c_registers.rows[3]);
  EXPECT_EQ(product.c_registers.accumulators(), expected);
}

TEST(SimulatedMma, SwappedRegistersGiveAnotherProduct) {
  MmaCase swapped_a(Half::f16);
  std::swap(swapped_a.a_registers.rows[1], swapped_a.a_registers.rows[2]);
  EXPECT_NE(swapped_a.multiply(), product_of(swapped_a.a, swapped_a.b, swapped_a.c));
  MmaCase swapped_b(Half::f16);
  std::swap(swapped_b.b_registers.rows[0], swapped_b.b_registers.rows[1]);
  EXPECT_NE(swapped_b.multiply(), product_of(swapped_b.a, swapped_b.b, swapped_b.c));
  MmaCase wrong_type(Half::bf16);
  wrong_type.type = Half::f16;
  EXPECT_NE(wrong_type.multiply(), product_of(wrong_type.a, wrong_type.b, wrong_type.c));
}

// The order that product.h states: from C on, by k, each sum rounded to f32.
TEST(SimulatedMma, AddsInStatedOrder) {
  MmaCase product(Half::f16);
  std::mt19937 random(7);
  const auto make_fraction = [&random](float& value) {
    value = f16_to_f32(f32_to_f16(static_cast<float>(random()) * 0x1p-31F - 1));
  };
  for (float& value : product.a.values) make_fraction(value);
  for (float& value : product.b.values) make_fraction(value);
  for (float& value : product.c.values) value = static_cast<float>(random()) * 0x1p-28F;
  product.a_registers.set_halves(Half::f16, product.a, position_in_a);
  product.b_registers.set_halves(Half::f16, product.b, position_in_b);
  product.c_registers.set_accumulators(product.c);
  EXPECT_EQ(product.multiply(), product_of(product.a, product.b, product.c));
}

TEST(SimulatedMma, GivesInfinityAndCanonicalNan) {
  MmaCase product(Half::bf16);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  product.a.at(3, 5) = kInfinity;
  for (int n = 0; n < 8; ++n) product.b.at(5, n) = static_cast<float>(n - 1);  // -1, 0, 1, ...
  product.a_registers.set_halves(Half::bf16, product.a, position_in_a);
  product.b_registers.set_halves(Half::bf16, product.b, position_in_b);
  const TestMatrix d = product.multiply();
  EXPECT_EQ(d.at(3, 0), -kInfinity);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(d.at(3, 1)), 0x7FFFFFFF);
  EXPECT_EQ(d.at(3, 2), kInfinity);
  EXPECT_EQ(d.at(4, 1), product_of(product.a, product.b, product.c).at(4, 1));
}

/// Addresses of the rows of 8 x 8 matrices in one of 16 x 16 elements with rows of 24 elements: lane i's row and column
/// as ldmatrix is used before mma.m16n8k16.
struct TileRows {
  alignas(16) std::uint16_t elements[16][24];

  explicit TileRows(const TestMatrix& matrix) {
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 16; ++j) elements[i][j] = f32_to_f16(matrix.at(i, j));
    }
  }
  std::array<const std::byte*, 32> rows() const {
    std::array<const std::byte*, 32> addresses;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      addresses[lane] = reinterpret_cast<const std::byte*>(&elements[lane % 16][lane / 16 * 8]);
    }
    return addresses;
  }
};

// PTX ISA 9.0, 9.7.14.5.15, the figure of ldmatrix: row r is in threads 4 r to 4 r + 3, two elements each.
TEST(SimulatedWarpMatrices, LoadsAsFigureShows) {
  alignas(16) std::uint16_t memory[4][8][8];
  for (int i = 0; i < 256; ++i) memory[i / 64][i / 8 % 8][i % 8] = static_cast<std::uint16_t>(i);
  std::array<const std::byte*, 32> rows;
  for (std::size_t i = 0; i < 32; ++i) rows[i] = reinterpret_cast<const std::byte*>(memory[i / 8][i % 8]);
  for (const std::size_t count : {1, 2, 4}) {
    for (const bool transposes : {false, true}) {
      TestRegisters<4> registers;
      const auto out = registers.out();
      load_matrices(std::span(rows).first(8 * count), transposes, std::span(out).first(count));
      for (int matrix = 0; matrix < static_cast<int>(count); ++matrix) {
        for (int row = 0; row < 8; ++row) {
          for (int column = 0; column < 8; ++column) {
            const std::uint16_t expected = transposes ? memory[matrix][column][row] : memory[matrix][row][column];
            ASSERT_EQ(registers.half(4 * row + column / 2, 2 * matrix + column % 2), expected);
          }
        }
      }
      for (std::size_t rest = count; rest < 4; ++rest) EXPECT_EQ(registers.rows[rest][0], 0xFFFFFFFF);

      std::uint16_t copy[4][8][8] = {};
      std::array<std::byte*, 32> targets;
      for (std::size_t i = 0; i < 32; ++i) targets[i] = reinterpret_cast<std::byte*>(copy[i / 8][i % 8]);
      const auto in = registers.in();
      store_matrices(std::span(in).first(count), transposes, std::span(targets).first(8 * count));
      for (std::size_t i = 0; i < 256; ++i) {
        ASSERT_EQ(copy[i / 64][i / 8 % 8][i % 8], i < 64 * count ? memory[i / 64][i / 8 % 8][i % 8] : 0);
      }
    }
  }
}

// What ldmatrix is for: x4 gives the fragment of A from rows of A, x4.trans that of two tiles of B from rows of B.
TEST(SimulatedWarpMatrices, FeedMma) {
  MmaCase product(Half::f16);
  const TestMatrix b = random_integers(16, 16, 8);
  const TileRows a_tile(product.a);
  load_matrices(a_tile.rows(), false, product.a_registers.out());
  EXPECT_EQ(product.multiply(), product_of(product.a, product.b, product.c));

  const TileRows b_tile(b);
  TestRegisters<4> both;
  load_matrices(b_tile.rows(), true, both.out());
  for (int tile = 0; tile < 2; ++tile) {
    for (int k = 0; k < 16; ++k) {
      for (int n = 0; n < 8; ++n) product.b.at(k, n) = b.at(k, 8 * tile + n);
    }
    const auto registers = both.in();
    mma_m16n8(Half::f16, product.a_registers.in(),
              std::array<ConstRow, 2>{registers[2 * tile], registers[2 * tile + 1]}, product.c_registers.in(),
              product.d_registers.out());
    EXPECT_EQ(product.d_registers.accumulators(), product_of(product.a, product.b, product.c)) << tile;
  }
  load_matrices(a_tile.rows(), true, product.a_registers.out());  // planted: .trans too much
  EXPECT_NE(product.multiply(), product_of(product.a, product.b, product.c));
}

}  // namespace
}  // namespace gradring::simulated_gpu
