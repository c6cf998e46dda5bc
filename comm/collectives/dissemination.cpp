// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/dissemination.h"

#include <bit>

namespace gradring::comm {
namespace {

std::size_t step_count(const Extent& extent) {
  return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(extent.world - 1)));
}

std::vector<Move> barrier_step(const Extent& extent, std::size_t index) {
  const int distance = 1 << index;
  return {{Move::Kind::send, (extent.rank + distance) % extent.world, {}},
          {Move::Kind::receive, (extent.rank - distance + extent.world) % extent.world, {}}};
}

}  // namespace

const Schedule kDisseminationBarrier{"barrier", false, step_count, barrier_step};

}  // namespace gradring::comm
