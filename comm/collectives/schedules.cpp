// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/schedules.h"

#include <bit>

#include "comm/transport/segment.h"

namespace gradring::comm {
namespace {

std::size_t direct_steps(const Extent& extent) { return extent.world > 1 ? 1 : 0; }

std::vector<Move> direct_step(const Extent& extent, std::size_t) {
  const auto world = static_cast<std::size_t>(extent.world);
  const auto shard = [&](int rank) { return shard_of(extent.elements, world, static_cast<std::size_t>(rank)); };
  std::vector<Move> moves;
  for (const Move::Kind kind : {Move::Kind::expose, Move::Kind::reduce_exposed})
    for (int distance = 1; distance < extent.world; ++distance) {
      const int peer = (extent.rank + distance) % extent.world;
      moves.push_back({kind, peer, shard(kind == Move::Kind::expose ? peer : extent.rank)});
    }
  return moves;
}

std::size_t chain_steps(const Extent& extent) {
  if (extent.world == 1) return 0;
  return chunk_count(extent.elements, extent.chunk) + static_cast<std::size_t>(extent.world) - 2;
}

std::vector<Move> broadcast_step(const Extent& extent, std::size_t index) {
  const std::size_t chunks = chunk_count(extent.elements, extent.chunk);
  const auto distance = static_cast<std::size_t>((extent.rank - extent.root + extent.world) % extent.world);
  const bool last = distance + 1 == static_cast<std::size_t>(extent.world);
  const bool closes = index + 1 == chain_steps(extent);
  const int next_rank = (extent.rank + 1) % extent.world;
  const int prev_rank = (extent.rank + extent.world - 1) % extent.world;
  const auto slice = [&](std::size_t chunk) { return chunk_of({0, extent.elements}, extent.chunk, chunk); };
  const auto exists = [&](std::size_t behind) { return index >= behind && index - behind < chunks; };

  std::vector<Move> moves;
  if (last ? closes : exists(distance))
    moves.push_back({Move::Kind::send, next_rank, last ? Slice{} : slice(index - distance)});
  if (distance == 0 ? closes : exists(distance - 1))
    moves.push_back({Move::Kind::receive, prev_rank, distance == 0 ? Slice{} : slice(index - distance + 1)});
  return moves;
}

std::size_t dissemination_steps(const Extent& extent) {
  return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(extent.world - 1)));
}

std::vector<Move> barrier_step(const Extent& extent, std::size_t index) {
  const int distance = 1 << index;
  return {{Move::Kind::send, (extent.rank + distance) % extent.world, {}},
          {Move::Kind::receive, (extent.rank - distance + extent.world) % extent.world, {}}};
}

}  // namespace

const Schedule kDirectAllReduce{"all_reduce", Algorithm::direct, true, direct_steps, direct_step};

const Schedule kChainBroadcast{"broadcast", Algorithm::chain, false, chain_steps, broadcast_step};

const Schedule kDisseminationBarrier{"barrier", Algorithm::dissemination, false, dissemination_steps, barrier_step};

}  // namespace gradring::comm
