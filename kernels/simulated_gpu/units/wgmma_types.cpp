// SPDX-License-Identifier: Apache-2.0
// wgmma of types other than f16 and bf16.
#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/simulated_gpu/units/wgmma.h"

namespace gradring::simulated_gpu {
namespace {

constexpr int kBitsOfRow = 256;

/// Element `k` of row or column `mn`.
std::uint32_t bits_at(Element element, std::span<const Chunk> chunks, std::size_t mn, int k) {
  const auto i = static_cast<std::size_t>(k);
  const std::size_t per_chunk = kChunkBytes * 8 / static_cast<std::size_t>(bits_of(element));
  return element_at(element, chunks[2 * mn + i / per_chunk].data(), i % per_chunk);
}

float value_at(Element element, bool negates, std::span<const Chunk> chunks, std::size_t mn, int k) {
  const float value = float_of(element, bits_at(element, chunks, mn, k));
  return negates ? -value : value;
}

}  // namespace

void read_elements(Element element, bool negates, std::span<const Chunk> chunks, int k0, LeftMatrix& a) {
  const int inner = std::min(16, kBitsOfRow / bits_of(element) - k0);
  float elements[16][16] = {};
  for (std::size_t row = 0; row < 16; ++row)
    for (int k = 0; k < inner; ++k) elements[row][k] = value_at(element, negates, chunks, row, k0 + k);
  set_elements(elements, a);
}

void read_elements(Element element, bool negates, std::span<const Chunk> chunks, int k0, RightMatrix& b) {
  const int inner = std::min(16, kBitsOfRow / bits_of(element) - k0);
  for (std::size_t column = 0; column < chunks.size() / 2; ++column)
    for (int k = 0; k < inner; ++k) b.values[k][column] = value_at(element, negates, chunks, column, k0 + k);
}

void wgmma_integers(Element type_a, Element type_b, std::span<const ConstRow> a, std::span<const Chunk> chunks_a,
                    std::span<const Chunk> chunks_b, bool keeps, bool saturates, std::span<const Row> d) {
  constexpr int kInner = kBitsOfRow / 8;
  std::int32_t left[16][kInner];
  if (a.empty()) {
    for (std::size_t row = 0; row < 16; ++row)
      for (int k = 0; k < kInner; ++k) left[row][k] = integer_of(type_a, bits_at(type_a, chunks_a, row, k));
  }
  for (int r = 0; r < static_cast<int>(a.size()); ++r)
    for (int lane = 0; lane < kLanes; ++lane)
      for (int j = 0; j < 4; ++j) {
        const Position at = register_position_in_a(16, 4, lane, r, j);
        left[at.row][at.column] = integer_of(type_a, a[r][lane] >> 8 * j);
      }
  const std::size_t columns = chunks_b.size() / 2;
  std::vector<std::int32_t> right(columns * kInner);
  for (std::size_t column = 0; column < columns; ++column)
    for (int k = 0; k < kInner; ++k)
      right[column * kInner + static_cast<std::size_t>(k)] = integer_of(type_b, bits_at(type_b, chunks_b, column, k));
  for (std::size_t i = 0; i < d.size(); ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto [row, column] = position_in_accumulators(lane, static_cast<int>(i));
      const std::int32_t* const b = &right[static_cast<std::size_t>(column) * kInner];
      std::int64_t sum = keeps ? static_cast<std::int32_t>(d[i][lane]) : 0;
      for (int k = 0; k < kInner; ++k) sum += std::int64_t{left[row][k]} * b[k];
      if (saturates)
        sum = std::clamp<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min(),
                                       std::numeric_limits<std::int32_t>::max());
      d[i][lane] = static_cast<std::uint32_t>(sum);
    }
}

}  // namespace gradring::simulated_gpu
