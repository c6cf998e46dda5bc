// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/schedules.h"

#include "comm/transport/segment.h"

namespace gradring::comm {
namespace {

std::size_t world_of(const Extent& extent) { return static_cast<std::size_t>(extent.world); }

/// The steps of one round of the ring.
std::size_t lap(const Extent& extent) { return world_of(extent) - 1; }

/// Equal on all ranks: the chunks of the longest shard.
std::size_t chunks(const Extent& extent) {
  return chunk_count(shard_of(extent.elements, world_of(extent), 0).elements, extent.chunk);
}

/// One ring step: the rank sends the shard `sent_behind` places before its own and receives the shard before that.
std::vector<Move> ring_step(const Extent& extent, Move::Kind receiving, std::size_t chunk, std::size_t sent_behind) {
  const std::size_t world = world_of(extent);
  const std::size_t rank = static_cast<std::size_t>(extent.rank);
  const auto slice_behind = [&](std::size_t behind) {
    const std::size_t shard = (rank + 2 * world - behind) % world;
    return chunk_of(shard_of(extent.elements, world, shard), extent.chunk, chunk);
  };
  const int next_rank = static_cast<int>((rank + 1) % world);
  const int prev_rank = static_cast<int>((rank + world - 1) % world);
  return {{Move::Kind::send, next_rank, slice_behind(sent_behind)},
          {receiving, prev_rank, slice_behind(sent_behind + 1)}};
}

std::size_t one_lap_count(const Extent& extent) { return chunks(extent) * lap(extent); }
std::size_t two_laps_count(const Extent& extent) { return 2 * one_lap_count(extent); }

std::vector<Move> reduce_scatter_step(const Extent& extent, std::size_t index) {
  return ring_step(extent, Move::Kind::receive_add, index / lap(extent), index % lap(extent) + 1);
}

std::vector<Move> all_gather_step(const Extent& extent, std::size_t index) {
  return ring_step(extent, Move::Kind::receive, index / lap(extent), index % lap(extent));
}

/// A chunk completes both laps before the next one starts, while it is in the cache.
std::vector<Move> all_reduce_step(const Extent& extent, std::size_t index) {
  const std::size_t steps = lap(extent);
  const std::size_t chunk = index / (2 * steps);
  const std::size_t step = index % (2 * steps);
  return step < steps ? reduce_scatter_step(extent, chunk * steps + step)
                      : all_gather_step(extent, chunk * steps + step - steps);
}

}  // namespace

const Schedule kRingReduceScatter{"reduce_scatter", Algorithm::ring, true, one_lap_count, reduce_scatter_step};
const Schedule kRingAllGather{"all_gather", Algorithm::ring, false, one_lap_count, all_gather_step};
const Schedule kRingAllReduce{"all_reduce", Algorithm::ring, true, two_laps_count, all_reduce_step};

}  // namespace gradring::comm
