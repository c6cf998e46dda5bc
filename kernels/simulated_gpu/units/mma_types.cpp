// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/mma_types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace gradring::simulated_gpu {
namespace {

constexpr int kMostInner = 64;

int elements_of_register(Element element) { return element == Element::f64 ? 1 : 32 / bits_of(element); }

/// Calls f(position, bits) for each element of A in its registers.
template <class F>
void each_of_a(Element element, int rows, std::span<const ConstRow> registers, const F& f) {
  const int count = elements_of_register(element);
  for (int r = 0; r < static_cast<int>(registers.size()); ++r)
    for (int lane = 0; lane < kLanes; ++lane)
      for (int j = 0; j < count; ++j)
        f(register_position_in_a(rows, count, lane, r, j), registers[r][lane] >> (j * bits_of(element) & 31));
}

template <class F>
void each_of_b(Element element, std::span<const ConstRow> registers, const F& f) {
  const int count = elements_of_register(element);
  for (int r = 0; r < static_cast<int>(registers.size()); ++r)
    for (int lane = 0; lane < kLanes; ++lane)
      for (int j = 0; j < count; ++j)
        f(register_position_in_b(count, lane, r, j), registers[r][lane] >> (j * bits_of(element) & 31));
}

void multiply_integers(const MmaShape& shape, std::span<const ConstRow> a, std::span<const ConstRow> b,
                       std::span<const ConstRow> c, std::span<const Row> d) {
  std::int32_t left[16][kMostInner] = {};
  std::int32_t right[kMostInner][8] = {};
  each_of_a(shape.a, shape.rows, a,
            [&](Position at, std::uint32_t bits) { left[at.row][at.column] = integer_of(shape.a, bits); });
  each_of_b(shape.b, b, [&](Position at, std::uint32_t bits) { right[at.row][at.column] = integer_of(shape.b, bits); });
  std::int64_t sums[16][8] = {};
  for (int row = 0; row < shape.rows; ++row)
    for (int k = 0; k < shape.k; ++k)
      for (int column = 0; column < 8; ++column) sums[row][column] += std::int64_t{left[row][k]} * right[k][column];
  std::uint32_t results[4][kLanes];  // a row of d may be any row of c
  for (std::size_t i = 0; i < d.size(); ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto [row, column] = position_in_accumulators(lane, static_cast<int>(i));
      std::int64_t sum = sums[row][column] + static_cast<std::int32_t>(c[i][lane]);
      if (shape.saturates)
        sum = std::clamp<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min(),
                                       std::numeric_limits<std::int32_t>::max());
      results[i][lane] = static_cast<std::uint32_t>(sum);
    }
  for (std::size_t i = 0; i < d.size(); ++i) std::memcpy(d[i], results[i], sizeof(results[i]));
}

}  // namespace

void read_left(Element element, int k, std::span<const ConstRow> registers, int k0, int inner, LeftMatrix& a) {
  float elements[16][kMostInner] = {};
  each_of_a(element, 16, registers,
            [&](Position at, std::uint32_t bits) { elements[at.row][at.column] = float_of(element, bits); });
  float part[16][16] = {};
  for (int row = 0; row < 16; ++row)
    for (int i = 0; i < inner && k0 + i < k; ++i) part[row][i] = elements[row][k0 + i];
  set_elements(part, a);
}

void unpack_sums(std::span<const ConstRow> pairs, std::span<const Row> f32) {
  for (std::size_t i = 0; i < pairs.size(); ++i)
    for (int lane = 0; lane < kLanes; ++lane)
      for (unsigned half = 0; half < 2; ++half)
        f32[2 * i + half][lane] =
            std::bit_cast<std::uint32_t>(f16_to_f32(static_cast<std::uint16_t>(pairs[i][lane] >> 16 * half)));
}

void pack_sums(std::span<const Row> f32, std::span<const Row> pairs) {
  for (std::size_t i = 0; i < pairs.size(); ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto half = [&](std::size_t row) {
        return std::uint32_t{f32_to_f16(std::bit_cast<float>(f32[row][lane]))};
      };
      pairs[i][lane] = half(2 * i + 1) << 16 | half(2 * i);
    }
}

void mma_of_types(const MmaShape& shape, std::span<const ConstRow> a, std::span<const ConstRow> b,
                  std::span<const ConstRow> c, std::span<const Row> d) {
  if (shape.sum == SumType::s32) return multiply_integers(shape, a, b, c, d);
  LeftMatrix left;
  RightMatrix right;
  float rows_of_b[kMostInner][8] = {};
  each_of_b(shape.b, b,
            [&](Position at, std::uint32_t bits) { rows_of_b[at.row][at.column] = float_of(shape.b, bits); });
  std::uint32_t sums[4][kLanes];
  const std::array<Row, 4> rows = {sums[0], sums[1], sums[2], sums[3]};
  if (shape.sum == SumType::f16)
    unpack_sums(c, rows);
  else
    for (int i = 0; i < 4; ++i) std::memcpy(sums[i], c[i], sizeof(sums[i]));
  for (int k0 = 0; k0 < shape.k; k0 += 16) {
    const int inner = std::min(16, shape.k - k0);
    read_left(shape.a, shape.k, a, k0, inner, left);
    for (int k = 0; k < inner; ++k) std::memcpy(right.values[k], rows_of_b[k0 + k], sizeof(rows_of_b[0]));
    multiply_add(left, right, inner, true, rows);
  }
  if (shape.sum == SumType::f16)
    pack_sums(rows, d);
  else
    for (int i = 0; i < 4; ++i) std::memcpy(d[i], sums[i], sizeof(sums[i]));
}

void mma_f64(int rows, int k, std::span<const double* const> a, std::span<const double* const> b,
             std::span<const double* const> c, std::span<double* const> d) {
  double left[16][16] = {};
  double right[16][8] = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int r = 0; r < static_cast<int>(a.size()); ++r) {
      const auto [row, column] = register_position_in_a(rows, 1, lane, r, 0);
      left[row][column] = a[r][lane];
    }
    for (int r = 0; r < static_cast<int>(b.size()); ++r) {
      const auto [row, column] = register_position_in_b(1, lane, r, 0);
      right[row][column] = b[r][lane];
    }
  }
  std::vector<std::array<double, kLanes>> sums(d.size());
  for (std::size_t i = 0; i < d.size(); ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto [row, column] = position_in_accumulators(lane, static_cast<int>(i));
      double sum = c[i][lane];
      for (int j = 0; j < k; ++j) sum = std::fma(left[row][j], right[j][column], sum);
      sums[i][lane] = sum;
    }
  for (std::size_t i = 0; i < d.size(); ++i) std::ranges::copy(sums[i], d[i]);
}

}  // namespace gradring::simulated_gpu
