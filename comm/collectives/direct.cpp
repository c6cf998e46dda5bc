// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/direct.h"

#include "comm/transport/partition.h"

namespace gradring::comm {
namespace {

std::size_t step_count(const Extent& extent) { return extent.world > 1 ? 1 : 0; }

std::vector<Move> all_reduce_step(const Extent& extent, std::size_t) {
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

}  // namespace

const Schedule kDirectAllReduce{"all_reduce", true, step_count, all_reduce_step};

}  // namespace gradring::comm
