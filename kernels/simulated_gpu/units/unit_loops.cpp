// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include "kernels/simulated_gpu/units/product.h"

namespace gradring::simulated_gpu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

void widen(Half type, const std::uint16_t* __restrict from, float* __restrict to, std::size_t elements) {
  if (type == Half::f16) {
    for (std::size_t i = 0; i < elements; ++i) to[i] = f16_to_f32(from[i]);
  } else {
    for (std::size_t i = 0; i < elements; ++i) to[i] = bf16_to_f32(from[i]);
  }
}

void narrow(Half type, const float* __restrict from, std::uint16_t* __restrict to, std::size_t elements) {
  if (type == Half::f16) {
    for (std::size_t i = 0; i < elements; ++i) to[i] = f32_to_f16(from[i]);
  } else {
    for (std::size_t i = 0; i < elements; ++i) to[i] = f32_to_bf16(from[i]);
  }
}

/// Eight lanes: two groups of four.
constexpr int kWidth = 8;
using Vector = float __attribute__((vector_size(kWidth * sizeof(float))));
constexpr int kVectors = kLanes / kWidth;

template <class Element>
Vector load(const Element* lanes) {
  Vector vector;
  std::memcpy(&vector, lanes, sizeof(vector));
  return vector;
}

template <class Element>
void store(Vector vector, Element* lanes) {
  std::memcpy(lanes, &vector, sizeof(vector));
}

void spread_rows(const float (&elements)[16][16], LeftMatrix& a) {
  for (int k = 0; k < 16; ++k) {
    for (int row = 0; row < 16; row += 2) {
      const float first = elements[row][k];
      const float second = elements[row + 1][k];
      store(Vector{first, first, first, first, second, second, second, second}, &a.values[k][row / 8][row % 8 * 4]);
    }
  }
}

/// The elements of a register of 16-bit elements: the first and the second of each lane.
struct alignas(64) WideRegister {
  float values[2][kLanes];
};

WideRegister widen(Half type, ConstRow pairs) {
  WideRegister wide;
  for (int j = 0; j < 2; ++j) {
    std::uint16_t bits[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) bits[lane] = static_cast<std::uint16_t>(pairs[lane] >> 16 * j);
    widen(type, bits, wide.values[j], kLanes);
  }
  return wide;
}

void read_left(Half type, std::span<const ConstRow> registers, LeftMatrix& a) {
  for (int r = 0; r < static_cast<int>(registers.size()); ++r) {
    const WideRegister wide = widen(type, registers[r]);
    for (int j = 0; j < 2; ++j) {
      // Lane 4 g + t holds k = 2 t + j of row g, and every lane of its group needs it.
      const auto spread = [&](int t) {
        for (int lane = 0; lane < kLanes; lane += kWidth) {
          const float x = wide.values[j][lane + t];
          const float y = wide.values[j][lane + 4 + t];
          store(Vector{x, x, x, x, y, y, y, y}, &a.values[r / 2 * 8 + 2 * t + j][r % 2][lane]);
        }
      };
      for (int t = 0; t < 4; ++t) spread(t);
    }
  }
}

void read_right(Half type, std::span<const ConstRow> registers, RightMatrix& b) {
  for (int r = 0; r < static_cast<int>(registers.size()); ++r) {
    const WideRegister wide = widen(type, registers[r]);
    for (int j = 0; j < 2; ++j) {
      for (int t = 0; t < 4; ++t) {  // lane 4 n + t holds k = 2 t + j of column n
        const float* x = &wide.values[j][t];
        store(Vector{x[0], x[4], x[8], x[12], x[16], x[20], x[24], x[28]}, b.values[8 * r + 2 * t + j]);
      }
    }
  }
}

/// Any NaN becomes PTX's canonical one: which one a sum leaves depends on the processor.
Vector with_canonical_nan(Vector sums) {
  const float nan = std::bit_cast<float>(0x7FFFFFFF);
  return sums == sums ? sums : Vector{nan, nan, nan, nan, nan, nan, nan, nan};
}

/// Two registers of D: rows of one half, columns of one parity each, of the eight columns from `b` on.
void multiply_half(const LeftMatrix& a, int half, const float* b, int inner, bool keeps, Row even, Row odd) {
  Vector sums[2][kVectors];
  for (int v = 0; v < kVectors; ++v) {
    sums[0][v] = keeps ? load(even + kWidth * v) : Vector{};
    sums[1][v] = keeps ? load(odd + kWidth * v) : Vector{};
  }
  for (int k = 0; k < inner; ++k, b += kMostColumns) {
    const Vector evens = {b[0], b[2], b[4], b[6], b[0], b[2], b[4], b[6]};
    const Vector odds = {b[1], b[3], b[5], b[7], b[1], b[3], b[5], b[7]};
    for (int v = 0; v < kVectors; ++v) {
      const Vector left = load(&a.values[k][half][kWidth * v]);
      sums[0][v] += left * evens;
      sums[1][v] += left * odds;
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    store(with_canonical_nan(sums[0][v]), even + kWidth * v);
    store(with_canonical_nan(sums[1][v]), odd + kWidth * v);
  }
}

void multiply_rows(const LeftMatrix& a, const RightMatrix& b, int inner, bool keeps, std::span<const Row> d) {
  for (std::size_t i = 0; i < d.size(); i += 2) {
    multiply_half(a, static_cast<int>(i / 2 % 2), &b.values[0][i / 4 * 8], inner, keeps, d[i], d[i + 1]);
  }
}

}  // namespace

UnitLoops unit_loops() {
  return {.set_elements = spread_rows,
          .read_left = read_left,
          .read_right = read_right,
          .multiply_add = multiply_rows,
          .to_f32 = widen,
          .to_half = narrow};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simulated_gpu
