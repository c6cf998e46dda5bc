// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/mma.h"

#include <cstring>
#include <span>

#include "kernels/simulated_gpu/units/product.h"

namespace gradring::simulated_gpu {
namespace {

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

void mma_m16n8k16(Half type, const std::array<ConstRow, 4>& a, const std::array<ConstRow, 2>& b,
                  const std::array<ConstRow, 4>& c, const std::array<Row, 4>& d) {
  multiply_fragments(type, a, b, c, d);
}

void mma_m16n8k8(Half type, const std::array<ConstRow, 2>& a, const std::array<ConstRow, 1>& b,
                 const std::array<ConstRow, 4>& c, const std::array<Row, 4>& d) {
  multiply_fragments(type, a, b, c, d);
}

}  // namespace gradring::simulated_gpu
