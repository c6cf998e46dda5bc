// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/mma.h"

#include <cstring>
#include <utility>

#include "kernels/simulated_gpu/units/product.h"

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kMatrixRows = 8;
static_assert(kMatrixRows * kMatrixRowBytes ==
              kLanes * sizeof(std::uint32_t));  // lanes 4 r to 4 r + 3: row r, in order

constexpr int kWmmaRegisters = 4;  ///< that hold the elements of A or B

/// The lines of A or B, from a fragment.
void read_lines(Half type, std::span<const ConstRow> registers, float (&lines)[kWmmaLines][16]) {
  std::uint32_t pairs[kLanes][kWmmaRegisters];
  for (int r = 0; r < kWmmaRegisters; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) pairs[lane][r] = registers[r][lane];
  }
  std::uint16_t bits[kWmmaLines * 16];
  std::memcpy(bits, pairs, sizeof(bits));
  to_f32(type, bits, lines[0], kWmmaLines * 16);
}

void transpose_lines(float (&lines)[kWmmaLines][16]) {
  for (int i = 0; i < kWmmaLines; ++i) {
    for (int j = 0; j < i; ++j) std::swap(lines[i][j], lines[j][i]);
  }
}

/// Calls move(i, lane, line, offset) for each accumulator: element i of a lane, and the bytes of a line in memory
/// before it.
template <class Move>
void each_accumulator(MatrixLayout layout, const Move& move) {
  for (int i = 0; i < 8; ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto [row, column] = position_in_accumulators(lane, i);
      const bool is_row_major = layout == MatrixLayout::row;
      move(i, lane, is_row_major ? row : column, sizeof(float) * static_cast<std::size_t>(is_row_major ? column : row));
    }
}

}  // namespace

void mma_m16n8(Half type, std::span<const ConstRow> a, std::span<const ConstRow> b, const std::array<ConstRow, 4>& c,
               const std::array<Row, 4>& d) {
  LeftMatrix left;
  RightMatrix right;
  read_fragment(type, a, left);
  read_fragment(type, b, right);
  std::uint32_t sums[4][kLanes];
  for (int i = 0; i < 4; ++i) std::memcpy(sums[i], c[i], sizeof(sums[i]));
  const std::array<Row, 4> rows = {sums[0], sums[1], sums[2], sums[3]};
  multiply_add(left, right, static_cast<int>(8 * b.size()), true, rows);
  for (int i = 0; i < 4; ++i) std::memcpy(d[i], sums[i], sizeof(sums[i]));
}

void load_matrices(std::span<const std::byte* const> rows, bool transposes, std::span<const Row> d) {
  for (std::size_t matrix = 0; matrix < d.size(); ++matrix) {
    Elements elements[kMatrixRows];
    for (std::size_t row = 0; row < kMatrixRows; ++row) {
      std::memcpy(&elements[row], rows[kMatrixRows * matrix + row], kMatrixRowBytes);
    }
    if (transposes) transpose(elements);
    std::memcpy(d[matrix], elements, sizeof(elements));
  }
}

void store_matrices(std::span<const ConstRow> s, bool transposes, std::span<std::byte* const> rows) {
  for (std::size_t matrix = 0; matrix < s.size(); ++matrix) {
    Elements elements[kMatrixRows];
    std::memcpy(elements, s[matrix], sizeof(elements));
    if (transposes) transpose(elements);
    for (std::size_t row = 0; row < kMatrixRows; ++row) {
      std::memcpy(rows[kMatrixRows * matrix + row], &elements[row], kMatrixRowBytes);
    }
  }
}

void wmma_load(const std::array<const std::byte*, kWmmaLines>& lines, std::span<const Row> registers) {
  std::uint32_t pairs[kLanes][kWmmaRegisters];
  for (int line = 0; line < kWmmaLines; ++line) std::memcpy(pairs[2 * line], lines[line], sizeof(pairs[0]) * 2);
  for (std::size_t r = 0; r < registers.size(); ++r) {
    for (int lane = 0; lane < kLanes; ++lane) registers[r][lane] = pairs[lane][r % kWmmaRegisters];
  }
}

void wmma_load_accumulators(MatrixLayout layout, const std::array<const std::byte*, kWmmaLines>& lines,
                            const std::array<Row, 8>& registers) {
  each_accumulator(layout, [&](int i, int lane, int line, std::size_t offset) {
    std::memcpy(&registers[i][lane], lines[line] + offset, sizeof(float));
  });
}

void wmma_store(MatrixLayout layout, const std::array<ConstRow, 8>& registers,
                const std::array<std::byte*, kWmmaLines>& lines) {
  each_accumulator(layout, [&](int i, int lane, int line, std::size_t offset) {
    std::memcpy(lines[line] + offset, &registers[i][lane], sizeof(float));
  });
}

void wmma_multiply(Half type, MatrixLayout layout_a, MatrixLayout layout_b, std::span<const ConstRow> a,
                   std::span<const ConstRow> b, const std::array<ConstRow, 8>& c, const std::array<Row, 8>& d) {
  LeftMatrix left;
  RightMatrix right;
  float lines[kWmmaLines][16];
  read_lines(type, a, lines);
  if (layout_a == MatrixLayout::col) transpose_lines(lines);
  set_elements(lines, left);
  read_lines(type, b, lines);
  if (layout_b == MatrixLayout::col) transpose_lines(lines);
  for (int k = 0; k < 16; ++k) std::memcpy(right.values[k], lines[k], sizeof(lines[k]));

  std::uint32_t sums[8][kLanes];
  std::array<Row, 8> rows;
  for (int i = 0; i < 8; ++i) std::memcpy(rows[i] = sums[i], c[i], sizeof(sums[i]));
  multiply_add(left, right, 16, true, rows);
  for (int i = 0; i < 8; ++i) std::memcpy(d[i], sums[i], sizeof(sums[i]));
}

}  // namespace gradring::simulated_gpu
