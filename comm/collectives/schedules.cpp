// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/schedules.h"

#include <algorithm>
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

/// ceil(log2 W)
std::size_t doublings(const Extent& extent) {
  return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(extent.world - 1)));
}

std::size_t doublings_and_one(const Extent& extent) { return extent.world == 1 ? 0 : doublings(extent) + 1; }

/// Two ranks have heard from each other once they have exchanged their parts.
std::size_t doubling_steps(const Extent& extent) { return extent.world == 2 ? 1 : doublings_and_one(extent); }

/// Empty messages around the ring.
std::vector<Move> notify_next(const Extent& extent) {
  return {{Move::Kind::send, (extent.rank + 1) % extent.world, {}},
          {Move::Kind::receive, (extent.rank + extent.world - 1) % extent.world, {}}};
}

/// Consecutive ranks; none if there are none of these numbers in the world.
struct Ranks {
  int first = 0;
  int count = 0;
};

/// The 2^level ranks that hold each other's parts after `level` doublings, of which `rank` is one.
Ranks ranks_around(int rank, std::size_t level, int world) {
  const int first = rank >> level << level;
  return {first, std::clamp(world - first, 0, 1 << level)};
}

Slice parts_of(const Ranks& ranks, const Extent& extent) {
  const auto shard = [&](int rank) {
    return shard_of(extent.elements, static_cast<std::size_t>(extent.world), static_cast<std::size_t>(rank));
  };
  const Slice last = shard(ranks.first + ranks.count - 1);
  const std::size_t begin = shard(ranks.first).offset;
  return {begin, last.offset + last.elements - begin};
}

std::vector<Move> doubling_step(const Extent& extent, std::size_t index) {
  if (index == doublings(extent)) return notify_next(extent);
  const Ranks ours = ranks_around(extent.rank, index, extent.world);
  const Ranks theirs = ranks_around(extent.rank ^ (1 << index), index, extent.world);
  if (theirs.count == 0) return {};
  const int position = extent.rank - ours.first;
  std::vector<Move> moves;
  for (int other = position; other < theirs.count; other += ours.count)
    moves.push_back({Move::Kind::send, theirs.first + other, parts_of(ours, extent)});
  moves.push_back({Move::Kind::receive, theirs.first + position % theirs.count, parts_of(theirs, extent)});
  return moves;
}

std::vector<Move> tree_step(const Extent& extent, std::size_t index) {
  if (index == doublings(extent)) return notify_next(extent);
  const int distance = (extent.rank - extent.root + extent.world) % extent.world;
  const int holders = 1 << index;  // those nearest to the root
  const auto rank_at = [&](int from_root) { return (extent.root + from_root) % extent.world; };
  if (distance >= 2 * holders) return {};
  if (distance >= holders) return {{Move::Kind::receive, rank_at(distance - holders), {0, extent.elements}}};
  if (distance + holders >= extent.world) return {};
  return {{Move::Kind::send, rank_at(distance + holders), {0, extent.elements}}};
}

std::vector<Move> barrier_step(const Extent& extent, std::size_t index) {
  const int distance = 1 << index;
  return {{Move::Kind::send, (extent.rank + distance) % extent.world, {}},
          {Move::Kind::receive, (extent.rank - distance + extent.world) % extent.world, {}}};
}

}  // namespace

const Schedule kDirectAllReduce{"all_reduce", Algorithm::direct, true, direct_steps, direct_step};

const Schedule kChainBroadcast{"broadcast", Algorithm::chain, false, chain_steps, broadcast_step};

const Schedule kDoublingAllGather{"all_gather", Algorithm::doubling, false, doubling_steps, doubling_step};

const Schedule kTreeBroadcast{"broadcast", Algorithm::tree, false, doublings_and_one, tree_step};

const Schedule kDisseminationBarrier{"barrier", Algorithm::dissemination, false, doublings, barrier_step};

}  // namespace gradring::comm
