// SPDX-License-Identifier: Apache-2.0
// mma of tf32, f64, integers, f8 and with f16 sums. Fragments are filled by the layouts of CUTLASS 4.2
// (include/cute/atom/mma_traits_sm80.hpp, mma_traits_sm90.hpp), copied as they stand there.
#include "kernels/simulated_gpu/units/mma_types.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <random>
#include <vector>

#include "tests/kernels/simulated_gpu/units/cute_layout.h"

namespace gradring::simulated_gpu {
namespace {

/// A: (thread, value) -> m + M k. B: n + N k. C: m + M n.
struct Layouts {
  CuteLayout a, b, c;
};

const CuteLayout kRows16x8({4, 8, 2, 2}, {32, 1, 16, 8});
const CuteLayout kRows8x8({4, 8, 2}, {16, 1, 8});
const CuteLayout kRows8x16({4, 8, 4}, {32, 1, 8});
const CuteLayout kRows8x4({4, 8, 1}, {8, 1, 0});
const Layouts kTf32K8{CuteLayout({4, 8, 2, 2}, {16, 1, 8, 64}), CuteLayout({4, 8, 2}, {8, 1, 32}), kRows16x8};
const Layouts kTf32K4{kRows8x8, CuteLayout({4, 8, 1}, {8, 1, 0}), kRows16x8};
const Layouts kF64K16{CuteLayout({4, 8, 2, 4}, {16, 1, 8, 64}), CuteLayout({4, 8, 4}, {8, 1, 32}), kRows16x8};
const Layouts kF64K4{kRows8x4, kRows8x4, kRows8x8};
const Layouts kBytesK32{CuteLayout({4, 8, 4, 2, 2}, {64, 1, 16, 8, 256}), CuteLayout({4, 8, 4, 2}, {32, 1, 8, 128}),
                        kRows16x8};
const Layouts kBytesK16{CuteLayout({4, 8, 4, 2}, {64, 1, 16, 8}), kRows8x16, kRows16x8};
const Layouts kBytesM8{kRows8x16, kRows8x16, kRows8x8};
const Layouts kHalvesK16{CuteLayout({4, 8, 2, 2, 2}, {32, 1, 16, 8, 128}), CuteLayout({4, 8, 2, 2}, {16, 1, 8, 64}),
                         kRows16x8};

using Matrix = std::vector<int>;  ///< column by column: i + rows j

/// Packs values into registers of 32 bits; `encode` gives the bits of a value, `width` how many.
template <class Encode>
std::vector<std::array<std::uint32_t, kLanes>> fragment(const CuteLayout& layout, const Matrix& matrix, int width,
                                                        const Encode& encode) {
  const int each = layout.size() / kLanes;
  std::vector<std::array<std::uint32_t, kLanes>> registers(static_cast<std::size_t>(each * width) / 32);
  for (auto& row : registers) row.fill(0);
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < each; ++i)
      registers[static_cast<std::size_t>(i * width / 32)][static_cast<std::size_t>(lane)] |=
          (encode(matrix[static_cast<std::size_t>(layout(lane + kLanes * i))]) &
           (width == 32 ? ~0u : (1u << width) - 1))
          << i * width % 32;
  return registers;
}

std::vector<ConstRow> rows_of(const std::vector<std::array<std::uint32_t, kLanes>>& registers) {
  std::vector<ConstRow> rows;
  for (const auto& row : registers) rows.push_back(row.data());
  return rows;
}

Matrix random_matrix(int size, int least, int most, unsigned seed) {
  std::mt19937 random(seed);
  Matrix made(static_cast<std::size_t>(size));
  for (int& value : made) value = std::uniform_int_distribution(least, most)(random);
  return made;
}

int product_at(const Matrix& a, const Matrix& b, int m, int k, int row, int column, int sum) {
  for (int i = 0; i < k; ++i)
    sum += a[static_cast<std::size_t>(row + m * i)] * b[static_cast<std::size_t>(column + 8 * i)];
  return sum;
}

/// The product of small integers, which all types hold.
template <class EncodeA, class EncodeB, class EncodeC>
void check_mma(const MmaShape& shape, const Layouts& layouts, int least, int most, EncodeA encode_a, EncodeB encode_b,
               EncodeC encode_c) {
  const Matrix a = random_matrix(shape.rows * shape.k, least, most, 1), b = random_matrix(8 * shape.k, least, most, 2);
  const Matrix c = random_matrix(shape.rows * 8, -8, 8, 3);
  const int sum_width = shape.sum == SumType::f16 ? 16 : 32;
  const auto in_a = fragment(layouts.a, a, bits_of(shape.a), encode_a);
  const auto in_b = fragment(layouts.b, b, bits_of(shape.b), encode_b);
  auto sums = fragment(layouts.c, c, sum_width, encode_c);
  ASSERT_EQ(in_a.size(), static_cast<std::size_t>(registers_of_a(shape)));
  ASSERT_EQ(in_b.size(), static_cast<std::size_t>(registers_of_b(shape)));
  ASSERT_EQ(sums.size(), static_cast<std::size_t>(registers_of_sum(shape)));
  Matrix expected(c.size());
  for (int row = 0; row < shape.rows; ++row)
    for (int column = 0; column < 8; ++column) {
      const auto at = static_cast<std::size_t>(row + shape.rows * column);
      expected[at] = product_at(a, b, shape.rows, shape.k, row, column, c[at]);
    }
  std::vector<Row> d;
  for (auto& row : sums) d.push_back(row.data());
  mma_of_types(shape, rows_of(in_a), rows_of(in_b), rows_of(sums), d);
  EXPECT_EQ(sums, fragment(layouts.c, expected, sum_width, encode_c));
}

std::uint32_t as_f32(int value) { return std::bit_cast<std::uint32_t>(static_cast<float>(value)); }
std::uint32_t as_f16(int value) { return f32_to_f16(static_cast<float>(value)); }
std::uint32_t as_integer(int value) { return static_cast<std::uint32_t>(value); }
/// OFP8: integers up to 8 have at most three bits behind the first.
std::uint32_t as_e4m3(int value) {
  constexpr std::uint32_t kCodes[] = {0x00, 0x38, 0x40, 0x44, 0x48, 0x4A, 0x4C, 0x4E, 0x50};
  return kCodes[std::abs(value)] | (value < 0 ? 0x80 : 0);
}

TEST(MmaTypes, Tf32LooksAtUpperBitsAlone) {
  const auto dirty = [](int value) { return as_f32(value) | 0x1FFF; };
  check_mma({.k = 8, .a = Element::tf32, .b = Element::tf32}, kTf32K8, -8, 8, dirty, dirty, as_f32);
  check_mma({.k = 4, .a = Element::tf32, .b = Element::tf32}, kTf32K4, -8, 8, as_f32, dirty, as_f32);
}

TEST(MmaTypes, Bytes) {
  const auto shape = [](int rows, int k, Element a, Element b) {
    return MmaShape{.rows = rows, .k = k, .a = a, .b = b, .sum = SumType::s32};
  };
  check_mma(shape(16, 32, Element::s8, Element::s8), kBytesK32, -128, 127, as_integer, as_integer, as_integer);
  check_mma(shape(16, 16, Element::u8, Element::u8), kBytesK16, 0, 255, as_integer, as_integer, as_integer);
  check_mma(shape(8, 16, Element::s8, Element::u8), kBytesM8, 0, 127, as_integer, as_integer, as_integer);
}

TEST(MmaTypes, E4M3WithBothSums) {
  MmaShape shape{.k = 32, .a = Element::e4m3, .b = Element::e4m3};
  check_mma(shape, kBytesK32, -8, 8, as_e4m3, as_e4m3, as_f32);
  shape.sum = SumType::f16;
  check_mma(shape, kBytesK32, -7, 7, as_e4m3, as_e4m3, as_f16);
}

TEST(MmaTypes, HalvesWithSumsOfHalves) {
  check_mma({.k = 16, .a = Element::f16, .b = Element::f16, .sum = SumType::f16}, kHalvesK16, -8, 8, as_f16, as_f16,
            as_f16);
}

TEST(MmaTypes, SaturatesIntegers) {
  std::array<std::uint32_t, kLanes> ones, sums[2];
  ones.fill(0x7F7F7F7F);
  for (auto& row : sums) row.fill(0x7FFFFFF0);
  const std::vector<ConstRow> a = {ones.data()}, c = {sums[0].data(), sums[1].data()};
  const std::vector<Row> d = {sums[0].data(), sums[1].data()};
  MmaShape shape{.rows = 8, .k = 16, .a = Element::s8, .b = Element::s8, .sum = SumType::s32, .saturates = true};
  mma_of_types(shape, a, a, c, d);
  EXPECT_EQ(sums[0][5], 0x7FFFFFFFu);
}

TEST(MmaTypes, F64) {
  for (const auto& [rows, k, layouts] : {std::tuple{8, 4, &kF64K4}, {16, 16, &kF64K16}}) {
    const Matrix a = random_matrix(rows * k, -9, 9, 4), b = random_matrix(8 * k, -9, 9, 5),
                 c = random_matrix(rows * 8, -9, 9, 6);
    const auto registers = [](const CuteLayout& layout, const Matrix& matrix) {
      std::vector<std::array<double, kLanes>> made(static_cast<std::size_t>(layout.size()) / kLanes);
      for (int i = 0; i < layout.size(); ++i)
        made[static_cast<std::size_t>(i / kLanes)][static_cast<std::size_t>(i % kLanes)] =
            matrix[static_cast<std::size_t>(layout(i))];
      return made;
    };
    const auto pointers = [](const auto& made) {
      std::vector<const double*> rows_made;
      for (const auto& row : made) rows_made.push_back(row.data());
      return rows_made;
    };
    const auto in_a = registers(layouts->a, a), in_b = registers(layouts->b, b);
    auto sums = registers(layouts->c, c);
    std::vector<double*> d;
    for (auto& row : sums) d.push_back(row.data());
    mma_f64(rows, k, pointers(in_a), pointers(in_b), pointers(sums), d);
    Matrix expected(c.size());
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < 8; ++column)
        expected[static_cast<std::size_t>(row + rows * column)] =
            product_at(a, b, rows, k, row, column, c[static_cast<std::size_t>(row + rows * column)]);
    EXPECT_EQ(sums, registers(layouts->c, expected));
  }
}

}  // namespace
}  // namespace gradring::simulated_gpu
