// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/chain.h"

#include "comm/transport/partition.h"

namespace gradring::comm {
namespace {

std::size_t step_count(const Extent& extent) {
  if (extent.world == 1) return 0;
  return chunk_count(extent.elements, extent.chunk) + static_cast<std::size_t>(extent.world) - 2;
}

std::vector<Move> broadcast_step(const Extent& extent, std::size_t index) {
  const std::size_t chunks = chunk_count(extent.elements, extent.chunk);
  const auto distance = static_cast<std::size_t>((extent.rank - extent.root + extent.world) % extent.world);
  const bool last = distance + 1 == static_cast<std::size_t>(extent.world);
  const auto slice = [&](std::size_t chunk) { return chunk_of({0, extent.elements}, extent.chunk, chunk); };
  const auto exists = [&](std::size_t behind) { return index >= behind && index - behind < chunks; };

  std::vector<Move> moves;
  if (!last && exists(distance))
    moves.push_back({Move::Kind::send, (extent.rank + 1) % extent.world, slice(index - distance)});
  if (distance > 0 && exists(distance - 1))
    moves.push_back(
        {Move::Kind::receive, (extent.rank + extent.world - 1) % extent.world, slice(index - distance + 1)});
  return moves;
}

}  // namespace

const Schedule kChainBroadcast{"broadcast", false, step_count, broadcast_step};

}  // namespace gradring::comm
