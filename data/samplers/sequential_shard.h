// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "data/samplers/sampler.h"

namespace gradring::data {

struct SequentialShardSpec {
  std::int64_t samples = 0;  ///< in the data set
  int rank = 0;
  int world_size = 1;
};

/// Consecutive samples for each rank, in the data set's order, each sample on exactly one rank: what evaluation needs
/// to be exact. Shares differ by one sample at most; a rank may have none.
///
/// Errors    InvalidArgument if rank is outside the world.
/// Example   tests/data/samplers/sequential_shard_test.cpp
class SequentialShard final : public Sampler {
 public:
  explicit SequentialShard(SequentialShardSpec spec);

  /// The first of this rank's samples.
  std::int64_t begin() const { return begin_of_rank(spec_.rank); }
  /// The same in every epoch.
  std::vector<std::int64_t> order(std::int64_t epoch) const override;
  std::int64_t size() const override { return size_of_rank(spec_.rank); }
  bool padding(std::int64_t) const override { return false; }

 private:
  std::int64_t begin_of_rank(int rank) const;
  std::int64_t size_of_rank(int rank) const { return begin_of_rank(rank + 1) - begin_of_rank(rank); }

  SequentialShardSpec spec_;
};

}  // namespace gradring::data
