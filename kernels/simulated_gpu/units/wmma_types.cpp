// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/wmma_types.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace gradring::simulated_gpu {
namespace {

int bytes_of(SumType sum) { return sum == SumType::f16 ? 2 : sum == SumType::f64 ? 8 : 4; }

std::size_t register_bytes(const WmmaShape& shape) { return shape.sum == SumType::f64 ? 8 : 4; }

/// Which lane holds an element of C, and as which of its elements.
struct Owner {
  int lane = 0, i = 0;
};

/// Calls f(owner, row, column) for each element of C.
template <class F>
void each_sum(const WmmaShape& shape, const F& f) {
  const int each = shape.m * shape.n / kLanes;
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < each; ++i) {
      const int linear = lane * each + i;
      const Position at = shape.m == 16 && shape.n == 16
                              ? position_in_accumulators(lane, i)
                              : Position{.row = linear / shape.n, .column = linear % shape.n};
      f(Owner{lane, i}, at.row, at.column);
    }
}

/// Where an element of C is in the registers.
template <class Rows>
auto* sum_at(const WmmaShape& shape, const Rows& registers, const Owner& owner) {
  const auto bytes = static_cast<std::size_t>(bytes_of(shape.sum));
  const std::size_t per_register = register_bytes(shape) / bytes;
  const auto i = static_cast<std::size_t>(owner.i);
  return registers[i / per_register] + static_cast<std::size_t>(owner.lane) * register_bytes(shape) +
         i % per_register * bytes;
}

template <class Move>
void move_sums(const WmmaShape& shape, MatrixLayout layout, const Move& move) {
  const auto bytes = static_cast<std::size_t>(bytes_of(shape.sum));
  each_sum(shape, [&](const Owner& owner, int row, int column) {
    const bool is_row_major = layout == MatrixLayout::row;
    move(owner, static_cast<std::size_t>(is_row_major ? row : column),
         static_cast<std::size_t>(is_row_major ? column : row) * bytes, bytes);
  });
}

/// The lines of A or B, as they lay in memory.
std::vector<std::byte> bytes_of_fragment(const WmmaLines& lines, std::size_t register_bytes,
                                         std::span<const ConstWideRow> registers) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(lines.count * lines.bytes()));
  const std::size_t distinct = bytes.size() / (kLanes * register_bytes);
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    for (std::size_t r = 0; r < distinct; ++r)
      std::memcpy(&bytes[(lane * distinct + r) * register_bytes], registers[r] + lane * register_bytes, register_bytes);
  return bytes;
}

template <class T>
T value_at(Element element, const std::vector<std::byte>& bytes, std::size_t i) {
  if constexpr (std::is_same_v<T, double>) {
    double value = 0;
    std::memcpy(&value, &bytes[i * sizeof value], sizeof value);
    return value;
  } else {
    const std::uint32_t bits = element_at(element, bytes.data(), i);
    if constexpr (std::is_same_v<T, float>) return float_of(element, bits);
    return static_cast<T>(integer_of(element, bits));
  }
}

float load_sum(SumType type, const std::byte* from, float) {
  if (type == SumType::f16) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from, sizeof bits);
    return f16_to_f32(bits);
  }
  float value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}
double load_sum(SumType, const std::byte* from, double) {
  double value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}
std::int64_t load_sum(SumType, const std::byte* from, std::int64_t) {
  std::int32_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void store_sum(const WmmaShape& shape, float value, std::byte* to) {
  if (value != value) value = std::bit_cast<float>(0x7FFFFFFF);
  const std::uint16_t half = f32_to_f16(value);
  if (shape.sum == SumType::f16)
    std::memcpy(to, &half, sizeof half);
  else
    std::memcpy(to, &value, sizeof value);
}
void store_sum(const WmmaShape&, double value, std::byte* to) { std::memcpy(to, &value, sizeof value); }
void store_sum(const WmmaShape& shape, std::int64_t value, std::byte* to) {
  if (shape.saturates)
    value = std::clamp<std::int64_t>(value, std::numeric_limits<std::int32_t>::min(),
                                     std::numeric_limits<std::int32_t>::max());
  const auto narrow = static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
  std::memcpy(to, &narrow, sizeof narrow);
}

template <class T>
void multiply(const WmmaShape& shape, MatrixLayout layout_a, MatrixLayout layout_b, std::span<const ConstWideRow> a,
              std::span<const ConstWideRow> b, std::span<const ConstWideRow> c, std::span<const WideRow> d) {
  const std::size_t width = register_bytes(shape);
  const std::vector<std::byte> left = bytes_of_fragment(lines_of(shape, WmmaMatrix::a, layout_a), width, a);
  const std::vector<std::byte> right = bytes_of_fragment(lines_of(shape, WmmaMatrix::b, layout_b), width, b);
  const auto at = [&](const std::vector<std::byte>& bytes, MatrixLayout layout, int row, int column, int rows,
                      int columns) {
    const int i = layout == MatrixLayout::row ? row * columns + column : column * rows + row;
    return value_at<T>(shape.element, bytes, static_cast<std::size_t>(i));
  };
  std::vector<T> values_a, values_b;  // row by row; column by column
  for (int row = 0; row < shape.m; ++row)
    for (int k = 0; k < shape.k; ++k) values_a.push_back(at(left, layout_a, row, k, shape.m, shape.k));
  for (int column = 0; column < shape.n; ++column)
    for (int k = 0; k < shape.k; ++k) values_b.push_back(at(right, layout_b, k, column, shape.k, shape.n));
  std::vector<T> sums;
  each_sum(shape, [&](const Owner& owner, int row, int column) {
    T sum = load_sum(shape.sum, sum_at(shape, c, owner), T{});
    for (int k = 0; k < shape.k; ++k) {
      const T x = values_a[static_cast<std::size_t>(row * shape.k + k)];
      const T y = values_b[static_cast<std::size_t>(column * shape.k + k)];
      if constexpr (std::is_same_v<T, double>)
        sum = std::fma(x, y, sum);
      else
        sum += x * y;
    }
    sums.push_back(sum);
  });
  auto next = sums.begin();
  each_sum(shape, [&](const Owner& owner, int, int) { store_sum(shape, *next++, sum_at(shape, d, owner)); });
}

}  // namespace

WmmaLines lines_of(const WmmaShape& shape, WmmaMatrix matrix, MatrixLayout layout) {
  const int rows = matrix == WmmaMatrix::b ? shape.k : shape.m;
  const int columns = matrix == WmmaMatrix::a ? shape.k : shape.n;
  const int bits = matrix == WmmaMatrix::sum ? 8 * bytes_of(shape.sum) : bits_of(shape.element);
  return layout == MatrixLayout::row ? WmmaLines{rows, columns, bits} : WmmaLines{columns, rows, bits};
}

int registers_of(const WmmaShape& shape, WmmaMatrix matrix) {
  if (shape.element == Element::f16 && matrix != WmmaMatrix::sum) return 8;
  const WmmaLines lines = lines_of(shape, matrix, MatrixLayout::row);
  return lines.count * lines.bytes() / (kLanes * static_cast<int>(register_bytes(shape)));
}

void load_fragment(const WmmaLines& shape, std::span<const std::byte* const> lines, std::size_t register_bytes,
                   std::span<const WideRow> registers) {
  const auto line_bytes = static_cast<std::size_t>(shape.bytes());
  std::vector<std::byte> bytes(lines.size() * line_bytes);
  for (std::size_t line = 0; line < lines.size(); ++line)
    std::memcpy(&bytes[line * line_bytes], lines[line], line_bytes);
  const std::size_t distinct = bytes.size() / (kLanes * register_bytes);
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    for (std::size_t r = 0; r < registers.size(); ++r)
      std::memcpy(registers[r] + lane * register_bytes, &bytes[(lane * distinct + r % distinct) * register_bytes],
                  register_bytes);
}

void load_sums(const WmmaShape& shape, MatrixLayout layout, std::span<const std::byte* const> lines,
               std::span<const WideRow> registers) {
  move_sums(shape, layout, [&](const Owner& owner, std::size_t line, std::size_t offset, std::size_t bytes) {
    std::memcpy(sum_at(shape, registers, owner), lines[line] + offset, bytes);
  });
}

void store_sums(const WmmaShape& shape, MatrixLayout layout, std::span<const ConstWideRow> registers,
                std::span<std::byte* const> lines) {
  move_sums(shape, layout, [&](const Owner& owner, std::size_t line, std::size_t offset, std::size_t bytes) {
    std::memcpy(lines[line] + offset, sum_at(shape, registers, owner), bytes);
  });
}

void wmma_of_types(const WmmaShape& shape, MatrixLayout layout_a, MatrixLayout layout_b,
                   std::span<const ConstWideRow> a, std::span<const ConstWideRow> b, std::span<const ConstWideRow> c,
                   std::span<const WideRow> d) {
  if (shape.sum == SumType::f64) return multiply<double>(shape, layout_a, layout_b, a, b, c, d);
  if (shape.sum == SumType::s32) return multiply<std::int64_t>(shape, layout_a, layout_b, a, b, c, d);
  multiply<float>(shape, layout_a, layout_b, a, b, c, d);
}

}  // namespace gradring::simulated_gpu
