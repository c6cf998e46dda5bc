// SPDX-License-Identifier: Apache-2.0
#include "data/samplers/sequential_shard.h"

#include <algorithm>
#include <numeric>

#include "data/samplers/check_rank.h"

namespace gradring::data {

SequentialShard::SequentialShard(SequentialShardSpec spec) : spec_(spec) {
  check_rank(spec.samples, spec.rank, spec.world_size);
}

std::vector<std::int64_t> SequentialShard::order(std::int64_t) const {
  std::vector<std::int64_t> mine(static_cast<std::size_t>(size()));
  std::iota(mine.begin(), mine.end(), begin_of_rank(spec_.rank));
  return mine;
}

/// The first `samples % world_size` ranks take one sample more.
std::int64_t SequentialShard::begin_of_rank(int rank) const {
  const std::int64_t share = spec_.samples / spec_.world_size;
  const std::int64_t longer = spec_.samples % spec_.world_size;
  return rank * share + std::min<std::int64_t>(rank, longer);
}

}  // namespace gradring::data
