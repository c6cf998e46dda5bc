// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "kernels/simulated_gpu/units/fragment.h"
#include "kernels/simulated_gpu/units/half.h"

namespace gradring::simulated_gpu {

/// A matrix of f32, row by row.
struct TestMatrix {
  int rows = 0;
  int columns = 0;
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(rows) * columns);

  float& at(int row, int column) { return values[static_cast<std::size_t>(row) * columns + column]; }
  float at(int row, int column) const { return values[static_cast<std::size_t>(row) * columns + column]; }
  bool operator==(const TestMatrix&) const = default;
};

/// Integers from -8 to 8: exact in f16 and bf16, and so are sums of their products in f32, in any order.
inline TestMatrix random_integers(int rows, int columns, unsigned seed) {
  TestMatrix matrix{.rows = rows, .columns = columns};
  std::mt19937 random(seed);
  for (float& value : matrix.values) value = static_cast<float>(static_cast<int>(random() % 17) - 8);
  return matrix;
}

/// a b + c by its definition.
inline TestMatrix product_of(const TestMatrix& a, const TestMatrix& b, TestMatrix c) {
  for (int i = 0; i < c.rows; ++i) {
    for (int j = 0; j < c.columns; ++j) {
      for (int k = 0; k < a.columns; ++k) c.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return c;
}

inline TestMatrix transposed(const TestMatrix& matrix) {
  TestMatrix result{.rows = matrix.columns, .columns = matrix.rows};
  for (int i = 0; i < matrix.rows; ++i) {
    for (int j = 0; j < matrix.columns; ++j) result.at(j, i) = matrix.at(i, j);
  }
  return result;
}

/// Registers of a warp, filled with a pattern that is a NaN in every type.
template <std::size_t kCount>
struct TestRegisters {
  std::array<std::array<std::uint32_t, kLanes>, kCount> rows;

  TestRegisters() {
    for (auto& row : rows) row.fill(0xFFFFFFFF);
  }
  std::array<Row, kCount> out() {
    std::array<Row, kCount> pointers;
    for (std::size_t i = 0; i < kCount; ++i) pointers[i] = rows[i].data();
    return pointers;
  }
  std::array<ConstRow, kCount> in() const {
    std::array<ConstRow, kCount> pointers;
    for (std::size_t i = 0; i < kCount; ++i) pointers[i] = rows[i].data();
    return pointers;
  }

  /// Element i of a fragment of 16-bit elements.
  void set_half(int lane, int i, std::uint16_t bits) {
    std::uint32_t& pair = rows[static_cast<std::size_t>(i / 2)][static_cast<std::size_t>(lane)];
    pair = i % 2 == 0 ? (pair & 0xFFFF0000) | bits : (pair & 0xFFFF) | std::uint32_t{bits} << 16;
  }
  std::uint16_t half(int lane, int i) const {
    return static_cast<std::uint16_t>(rows[static_cast<std::size_t>(i / 2)][static_cast<std::size_t>(lane)] >>
                                      i % 2 * 16);
  }
  float value(int lane, int i) const {
    return std::bit_cast<float>(rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(lane)]);
  }

  /// A fragment of 16-bit elements, or of f32, by where position_of(lane, i) says that they are.
  template <class PositionOf>
  void set_halves(Half type, const TestMatrix& matrix, const PositionOf& position_of) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int i = 0; i < static_cast<int>(2 * kCount); ++i) {
        const Position position = position_of(lane, i);
        set_half(lane, i, to_half(type, matrix.at(position.row, position.column)));
      }
    }
  }
  void set_accumulators(const TestMatrix& matrix) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int i = 0; i < static_cast<int>(kCount); ++i) {
        const Position position = position_in_accumulators(lane, i);
        rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(lane)] =
            std::bit_cast<std::uint32_t>(matrix.at(position.row, position.column));
      }
    }
  }
  TestMatrix accumulators() const {
    TestMatrix matrix{.rows = 16, .columns = static_cast<int>(kCount) * 2};
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int i = 0; i < static_cast<int>(kCount); ++i) {
        const Position position = position_in_accumulators(lane, i);
        matrix.at(position.row, position.column) = value(lane, i);
      }
    }
    return matrix;
  }
};

}  // namespace gradring::simulated_gpu
