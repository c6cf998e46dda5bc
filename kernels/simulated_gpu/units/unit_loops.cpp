// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/unit_loops.h"

#include <cstring>

namespace gradring::simulated_gpu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// Eight lanes: two groups of four.
using Vector = float __attribute__((vector_size(32)));
constexpr int kVectors = 4;

/// A as the lanes need it: for each k and each half of the rows, lane l has the element of row l / 4.
struct alignas(64) Lanes {
  Vector values[16][2][kVectors];
};

void spread_rows(const LeftMatrix& a, int inner, Lanes& lanes) {
  for (int k = 0; k < inner; ++k) {
    for (int half = 0; half < 2; ++half) {
      for (int v = 0; v < kVectors; ++v) {
        const float first = a.values[half * 8 + v * 2][k];
        const float second = a.values[half * 8 + v * 2 + 1][k];
        lanes.values[k][half][v] = Vector{first, first, first, first, second, second, second, second};
      }
    }
  }
}

/// Two registers of D: rows of one half, columns of one parity each, of the eight columns from `b` on.
void multiply_half(const Lanes& a, int half, const float* b, int inner, bool keeps, Row even, Row odd) {
  Vector sums[2][kVectors] = {};
  if (keeps) {
    std::memcpy(sums[0], even, sizeof(sums[0]));
    std::memcpy(sums[1], odd, sizeof(sums[1]));
  }
  for (int k = 0; k < inner; ++k, b += kMostColumns) {
    const Vector evens = {b[0], b[2], b[4], b[6], b[0], b[2], b[4], b[6]};
    const Vector odds = {b[1], b[3], b[5], b[7], b[1], b[3], b[5], b[7]};
    for (int v = 0; v < kVectors; ++v) {
      sums[0][v] += a.values[k][half][v] * evens;
      sums[1][v] += a.values[k][half][v] * odds;
    }
  }
  std::memcpy(even, sums[0], sizeof(sums[0]));
  std::memcpy(odd, sums[1], sizeof(sums[1]));
}

void multiply_rows(const LeftMatrix& a, const RightMatrix& b, int inner, bool keeps, std::span<const Row> d) {
  Lanes lanes;
  spread_rows(a, inner, lanes);
  for (std::size_t i = 0; i < d.size(); i += 2) {
    multiply_half(lanes, static_cast<int>(i / 2 % 2), &b.values[0][i / 4 * 8], inner, keeps, d[i], d[i + 1]);
  }
}

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

}  // namespace

UnitLoops unit_loops() { return {.multiply_add = multiply_rows, .to_f32 = widen, .to_half = narrow}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simulated_gpu
