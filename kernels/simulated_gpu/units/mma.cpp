// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/mma.h"

#include <cstring>

namespace gradring::simulated_gpu {
namespace {

/// B from its fragment: registers 1 (k8) or 2 (k16), as place_in_b states.
void read_fragment(Half type, std::span<const ConstRow> registers, RightMatrix& b) {
  std::uint16_t bits[16][8];
  for (int r = 0; r < static_cast<int>(registers.size()); ++r) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t pair = registers[r][lane];
      const Place place = place_in_b(lane, 2 * r);
      bits[place.row][place.column] = static_cast<std::uint16_t>(pair);
      bits[place.row + 1][place.column] = static_cast<std::uint16_t>(pair >> 16);
    }
  }
  const std::size_t inner = 8 * registers.size();
  float values[16][8];
  to_f32(type, bits[0], values[0], 8 * inner);
  for (std::size_t k = 0; k < inner; ++k) std::memcpy(b.values[k], values[k], sizeof(values[k]));
}

void multiply_fragments(Half type, std::span<const ConstRow> a, std::span<const ConstRow> b,
                        const std::array<ConstRow, 4>& c, const std::array<Row, 4>& d) {
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

}  // namespace

void read_fragment(Half type, std::span<const ConstRow> registers, LeftMatrix& a) {
  std::uint16_t bits[16][16] = {};
  for (int r = 0; r < static_cast<int>(registers.size()); ++r) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t pair = registers[r][lane];
      const Place place = place_in_a(lane, 2 * r);
      bits[place.row][place.column] = static_cast<std::uint16_t>(pair);
      bits[place.row][place.column + 1] = static_cast<std::uint16_t>(pair >> 16);
    }
  }
  to_f32(type, bits[0], a.values[0], 256);
}

void mma_m16n8k16(Half type, const std::array<ConstRow, 4>& a, const std::array<ConstRow, 2>& b,
                  const std::array<ConstRow, 4>& c, const std::array<Row, 4>& d) {
  multiply_fragments(type, a, b, c, d);
}

void mma_m16n8k8(Half type, const std::array<ConstRow, 2>& a, const std::array<ConstRow, 1>& b,
                 const std::array<ConstRow, 4>& c, const std::array<Row, 4>& d) {
  multiply_fragments(type, a, b, c, d);
}

}  // namespace gradring::simulated_gpu
