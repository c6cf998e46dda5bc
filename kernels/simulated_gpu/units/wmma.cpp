// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/wmma.h"

#include <cstring>
#include <utility>

#include "kernels/simulated_gpu/units/product.h"

namespace gradring::simulated_gpu {
namespace {

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

/// The element of a line in memory where an accumulator lies: {line, index}.
Place in_memory(MatrixLayout layout, Place place) {
  return layout == MatrixLayout::row ? place : Place{.row = place.column, .column = place.row};
}

}  // namespace

void wmma_load(const std::array<const std::byte*, kWmmaLines>& lines, std::span<const Row> registers) {
  std::uint32_t pairs[kLanes][kWmmaRegisters];
  for (int line = 0; line < kWmmaLines; ++line) std::memcpy(pairs[2 * line], lines[line], sizeof(pairs[0]) * 2);
  for (std::size_t r = 0; r < registers.size(); ++r) {
    for (int lane = 0; lane < kLanes; ++lane) registers[r][lane] = pairs[lane][r % kWmmaRegisters];
  }
}

void wmma_load_accumulators(MatrixLayout layout, const std::array<const std::byte*, kWmmaLines>& lines,
                            const std::array<Row, 8>& registers) {
  for (int i = 0; i < 8; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const Place place = in_memory(layout, place_in_accumulators(lane, i));
      std::memcpy(&registers[i][lane], lines[place.row] + sizeof(float) * place.column, sizeof(float));
    }
  }
}

void wmma_store(MatrixLayout layout, const std::array<ConstRow, 8>& registers,
                const std::array<std::byte*, kWmmaLines>& lines) {
  for (int i = 0; i < 8; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const Place place = in_memory(layout, place_in_accumulators(lane, i));
      std::memcpy(lines[place.row] + sizeof(float) * place.column, &registers[i][lane], sizeof(float));
    }
  }
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
