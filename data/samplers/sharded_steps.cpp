// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "data/loader/batch_geometry.h"
#include "data/samplers/check_rank.h"
#include "data/samplers/distributed_sampler.h"
#include "data/samplers/sequential_shard.h"
#include "data/samplers/step_sampler.h"

namespace gradring::data {
namespace {

class ShardedSteps final : public StepSampler {
 public:
  ShardedSteps(const StepSamplerSpec& spec, std::int64_t shard)
      : spec_(spec), shard_(shard), windows_{.samples = spec.samples, .batch_size = spec.samples_of_step} {
    check_rank(spec.samples, spec.rank, spec.world_size);
    check(shard > 0 && spec.samples_of_step > 0 && spec.samples_of_step % shard == 0,
          "a step's samples must be a multiple of the shards'");
  }

  std::string_view name() const override { return "sharded"; }
  std::int64_t steps() const override { return windows_.steps(); }
  std::int64_t samples_of_step() const override { return windows_.batch_size; }
  std::int64_t most_of_rank() const override { return range_of_rank(0, 0, windows_.batch_size).count(); }

  std::vector<std::int64_t> order(std::int64_t epoch) const override {
    const std::vector<std::int64_t> all =
        torch_permutation(spec_.samples, spec_.seed + static_cast<std::uint64_t>(epoch));
    std::vector<std::int64_t> mine;
    for (std::int64_t index = 0; index < steps(); ++index) {
      const Range range = range_of(index);
      mine.insert(mine.end(), all.begin() + range.begin, all.begin() + range.end);
    }
    return mine;
  }

  StepShare step(std::int64_t index) const override {
    const std::int64_t begin =
        index * range_of_rank(spec_.rank, 0, windows_.batch_size).count();  // all before are whole
    return {.begin = begin,
            .end = begin + range_of(index).count(),
            .most = range_of_rank(0, windows_.begin(index), windows_.end(index)).count(),
            .samples = windows_.end(index) - windows_.begin(index),
            .position = windows_.begin(index)};
  }

 private:
  /// Positions in the epoch's order.
  struct Range {
    std::int64_t begin = 0, end = 0;
    std::int64_t count() const { return end - begin; }
  };

  Range range_of(std::int64_t index) const {
    return range_of_rank(spec_.rank, windows_.begin(index), windows_.end(index));
  }

  /// The whole shards that a rank has of a step.
  Range range_of_rank(int rank, std::int64_t begin, std::int64_t end) const {
    const std::int64_t shards = (end - begin + shard_ - 1) / shard_;
    const SequentialShard dealt({.samples = shards, .rank = rank, .world_size = spec_.world_size});
    return {std::min(begin + dealt.begin() * shard_, end),
            std::min(begin + (dealt.begin() + dealt.size()) * shard_, end)};
  }

  StepSamplerSpec spec_;
  std::int64_t shard_;
  BatchGeometry windows_;
};

}  // namespace

std::unique_ptr<StepSampler> make_sharded_steps(const StepSamplerSpec& spec, std::int64_t shard) {
  return std::make_unique<ShardedSteps>(spec, shard);
}

}  // namespace gradring::data
