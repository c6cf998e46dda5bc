// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/mma.h"

#include <gtest/gtest.h>

#include "tests/kernels/simulated_gpu/units/test_matrix.h"

namespace gradring::simulated_gpu {
namespace {

constexpr MatrixLayout kLayouts[] = {MatrixLayout::row, MatrixLayout::col};

/// A 16 x 16 matrix in memory, its lines `kStride` elements apart.
template <class Element>
struct WmmaMemory {
  static constexpr std::size_t kStride = 24;
  std::vector<Element> elements = std::vector<Element>(16 * kStride);

  template <class Byte = const std::byte*>
  std::array<Byte, kWmmaLines> lines() {
    std::array<Byte, kWmmaLines> pointers;
    for (std::size_t i = 0; i < 16; ++i) pointers[i] = reinterpret_cast<Byte>(&elements[i * kStride]);
    return pointers;
  }
  Element& at(MatrixLayout layout, int row, int column) {
    const int line = layout == MatrixLayout::row ? row : column;
    const int place = layout == MatrixLayout::row ? column : row;
    return elements[static_cast<std::size_t>(line) * kStride + static_cast<std::size_t>(place)];
  }
};

template <std::size_t kRegisters>
void load(Half type, MatrixLayout layout, const TestMatrix& matrix, TestRegisters<kRegisters>& registers) {
  WmmaMemory<std::uint16_t> memory;
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) memory.at(layout, i, j) = to_half(type, matrix.at(i, j));
  }
  wmma_load(memory.lines(), registers.out());
}

/// D = A B + C with A, B, C loaded and D stored in these layouts; A multiplied as if it were in `claimed_a`.
template <std::size_t kRegisters>
TestMatrix multiply(Half type, MatrixLayout layout_a, MatrixLayout claimed_a, MatrixLayout layout_b,
                    MatrixLayout layout_c, const TestMatrix& a, const TestMatrix& b, const TestMatrix& c) {
  TestRegisters<kRegisters> a_registers;
  TestRegisters<kRegisters> b_registers;
  TestRegisters<8> accumulators;
  load(type, layout_a, a, a_registers);
  load(type, layout_b, b, b_registers);
  WmmaMemory<float> memory;
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) memory.at(layout_c, i, j) = c.at(i, j);
  }
  wmma_load_accumulators(layout_c, memory.lines(), accumulators.out());
  wmma_multiply(type, claimed_a, layout_b, a_registers.in(), b_registers.in(), accumulators.in(), accumulators.out());
  wmma_store(layout_c, accumulators.in(), memory.lines<std::byte*>());
  TestMatrix d{.rows = 16, .columns = 16};
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) d.at(i, j) = memory.at(layout_c, i, j);
  }
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(memory.elements[i * WmmaMemory<float>::kStride + 16], 0);
  return d;
}

TEST(SimulatedWmma, MultipliesInAllLayouts) {
  const TestMatrix a = random_integers(16, 16, 1);
  const TestMatrix b = random_integers(16, 16, 2);
  const TestMatrix c = random_integers(16, 16, 3);
  const TestMatrix expected = product_of(a, b, c);
  for (const MatrixLayout layout_a : kLayouts) {
    for (const MatrixLayout layout_b : kLayouts) {
      for (const MatrixLayout layout_c : kLayouts) {
        EXPECT_EQ(multiply<8>(Half::f16, layout_a, layout_a, layout_b, layout_c, a, b, c), expected);
        EXPECT_EQ(multiply<4>(Half::bf16, layout_a, layout_a, layout_b, layout_c, a, b, c), expected);
      }
    }
  }
}

TEST(SimulatedWmma, WrongLayoutGivesProductOfTranspose) {
  const TestMatrix a = random_integers(16, 16, 1);
  const TestMatrix b = random_integers(16, 16, 2);
  const TestMatrix c = random_integers(16, 16, 3);
  constexpr auto kRow = MatrixLayout::row;
  EXPECT_EQ(multiply<8>(Half::f16, kRow, MatrixLayout::col, kRow, kRow, a, b, c), product_of(transposed(a), b, c));
}

TEST(SimulatedWmma, FragmentsHoldEveryElementOnce) {
  const TestMatrix a = random_integers(16, 16, 1);
  TestRegisters<8> f16;
  load(Half::f16, MatrixLayout::row, a, f16);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(f16.rows[i], f16.rows[i + 4]);
  // As code that scales a fragment does it: every element of every register.
  for (auto& row : f16.rows) {
    for (std::uint32_t& pair : row) pair ^= 0x80008000;
  }
  TestRegisters<8> b_registers;
  TestRegisters<8> accumulators;
  const TestMatrix b = random_integers(16, 16, 2);
  load(Half::f16, MatrixLayout::row, b, b_registers);
  accumulators.set_accumulators(TestMatrix{.rows = 16, .columns = 16});
  wmma_multiply(Half::f16, MatrixLayout::row, MatrixLayout::row, f16.in(), b_registers.in(), accumulators.in(),
                accumulators.out());
  TestMatrix negated = a;
  for (float& value : negated.values) value = -value;
  EXPECT_EQ(accumulators.accumulators(), product_of(negated, b, TestMatrix{.rows = 16, .columns = 16}));
}

}  // namespace
}  // namespace gradring::simulated_gpu
