// SPDX-License-Identifier: Apache-2.0
#include "data/loader/sampler.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/ops/gather_batch/draws.h"

namespace gradring::data {
namespace {

/// From here on PyTorch draws 64 bits per swap.
constexpr std::int64_t kTooManyForTorch = std::numeric_limits<std::uint32_t>::max() / 20;

/// Errors    InvalidArgument; for a rank outside the world with PyTorch's message, which people search for.
void check_rank(std::int64_t samples, int rank, int world_size) {
  check(samples >= 0, "a dataset has " + std::to_string(samples) + " samples, expected 0 or more");
  check(world_size >= 1, "the world size is " + std::to_string(world_size) + ", expected 1 or more");
  check(rank >= 0 && rank < world_size, "Invalid rank " + std::to_string(rank) +
                                            ", rank should be in the interval [0, " + std::to_string(world_size - 1) +
                                            "]");
}

class DistributedSteps final : public StepSampler {
 public:
  explicit DistributedSteps(const StepSamplerSpec& spec)
      : sampler_({.samples = spec.samples, .rank = spec.rank, .world_size = spec.world_size, .seed = spec.seed}),
        samples_(spec.samples),
        rank_(spec.rank),
        world_size_(spec.world_size),
        windows_{.samples = sampler_.size(), .batch_size = spec.samples_of_step / spec.world_size} {
    check(spec.samples_of_step > 0 && spec.samples_of_step % spec.world_size == 0,
          "a step has " + std::to_string(spec.samples_of_step) + " samples, expected a multiple of the " +
              std::to_string(spec.world_size) + " ranks");
  }

  std::string_view name() const override { return "distributed"; }
  std::vector<std::int64_t> order(std::int64_t epoch) const override {
    std::vector<std::int64_t> order = sampler_.order(epoch);
    for (std::int64_t position = 0; position < std::ssize(order); ++position) {
      std::int64_t& visit = order[static_cast<std::size_t>(position)];
      visit =
          kernels::gather_batch::visit_of(visit, (position * world_size_ + rank_) / samples_);  // padding comes later
    }
    return order;
  }
  std::int64_t steps() const override { return windows_.steps(); }
  std::int64_t samples_of_step() const override { return windows_.batch_size * world_size_; }
  std::int64_t most_of_rank() const override { return windows_.batch_size; }
  std::int64_t micro_batch_of_rank() const override { return windows_.batch_size; }
  StepShare step(std::int64_t index) const override {
    const std::int64_t begin = windows_.begin(index), end = windows_.end(index);
    return {.begin = begin,
            .end = end,
            .most = end - begin,
            .samples = (end - begin) * world_size_,
            .position = begin * world_size_,
            .first = rank_,
            .stride = world_size_};
  }

 private:
  DistributedSampler sampler_;
  std::int64_t samples_;
  std::int64_t rank_;
  std::int64_t world_size_;
  BatchGeometry windows_;
};

class ShardedSteps final : public StepSampler {
 public:
  ShardedSteps(const StepSamplerSpec& spec, const ShardSpec& shards)
      : spec_(spec),
        shard_(shards.samples),
        windows_{.samples = spec.samples, .batch_size = spec.samples_of_step},
        micro_batches_{.samples = spec.samples,
                       .batch_size = shards.of_micro_batch > 0 ? shards.of_micro_batch : spec.samples_of_step} {
    check_rank(spec.samples, spec.rank, spec.world_size);
    check_multiple("a micro-batch", micro_batches_.batch_size, "the shard size", shard_);
    check_multiple("a step", spec.samples_of_step, "the samples of a micro-batch", micro_batches_.batch_size);
  }

  std::string_view name() const override { return "sharded"; }
  std::int64_t steps() const override { return windows_.steps(); }
  std::int64_t samples_of_step() const override { return windows_.batch_size; }
  std::int64_t most_of_rank() const override { return per_step() * full_micro_batch(0); }
  std::int64_t micro_batch_of_rank() const override { return full_micro_batch(spec_.rank); }

  std::vector<std::int64_t> order(std::int64_t epoch) const override {
    const std::vector<std::int64_t> all =
        torch_permutation(spec_.samples, spec_.seed + static_cast<std::uint64_t>(epoch));
    std::vector<std::int64_t> mine;
    for (std::int64_t index = 0; index < micro_batches_.steps(); ++index) {
      const Range range = range_of_micro_batch(spec_.rank, index);
      mine.insert(mine.end(), all.begin() + range.begin, all.begin() + range.end);
    }
    return mine;
  }

  StepShare step(std::int64_t index) const override {
    const std::int64_t begin = index * per_step() * full_micro_batch(spec_.rank);  // all before are whole
    return {.begin = begin,
            .end = begin + samples_in_step(spec_.rank, index),
            .most = samples_in_step(0, index),
            .samples = windows_.end(index) - windows_.begin(index),
            .position = windows_.begin(index),
            .first = number_in_step(index, 0)};
  }

  std::int64_t number_in_step(std::int64_t index, std::int64_t offset) const override {
    std::int64_t i = index * per_step();
    Range range = range_of_micro_batch(spec_.rank, i);
    while (offset >= range.count() && i + 1 < end_of_step(index)) {
      offset -= range.count();
      range = range_of_micro_batch(spec_.rank, ++i);
    }
    return range.begin + offset - windows_.begin(index);
  }

 private:
  /// Positions in the epoch's order.
  struct Range {
    std::int64_t begin = 0, end = 0;
    std::int64_t count() const { return end - begin; }
  };

  static void check_multiple(const char* what, std::int64_t samples, const char* of, std::int64_t divisor) {
    check(divisor > 0 && samples > 0 && samples % divisor == 0, std::string(what) + " has " + std::to_string(samples) +
                                                                    " samples, expected a multiple of " + of + ", " +
                                                                    std::to_string(divisor));
  }

  std::int64_t per_step() const { return windows_.batch_size / micro_batches_.batch_size; }

  std::int64_t full_micro_batch(int rank) const { return range_of_rank(rank, 0, micro_batches_.batch_size).count(); }

  std::int64_t samples_in_step(int rank, std::int64_t index) const {
    std::int64_t samples = 0;
    for (std::int64_t i = index * per_step(); i < end_of_step(index); ++i)
      samples += range_of_micro_batch(rank, i).count();
    return samples;
  }

  /// After the last micro-batch of a step.
  std::int64_t end_of_step(std::int64_t index) const {
    return std::min((index + 1) * per_step(), micro_batches_.steps());
  }

  Range range_of_micro_batch(int rank, std::int64_t index) const {
    return range_of_rank(rank, micro_batches_.begin(index), micro_batches_.end(index));
  }

  /// The whole shards that a rank has of a micro-batch.
  Range range_of_rank(int rank, std::int64_t begin, std::int64_t end) const {
    const std::int64_t shards = ceil_div(end - begin, shard_);
    const SequentialShard dealt({.samples = shards, .rank = rank, .world_size = spec_.world_size});
    return {std::min(begin + dealt.begin() * shard_, end),
            std::min(begin + (dealt.begin() + dealt.size()) * shard_, end)};
  }

  StepSamplerSpec spec_;
  std::int64_t shard_;
  BatchGeometry windows_;
  BatchGeometry micro_batches_;
};

}  // namespace

std::vector<std::int64_t> torch_permutation(std::int64_t count, std::uint64_t seed) {
  check(count >= 0 && count < kTooManyForTorch, "cannot shuffle " + std::to_string(count) + " samples: at most " +
                                                    std::to_string(kTooManyForTorch - 1) + " are supported");
  std::mt19937 random(static_cast<std::uint32_t>(seed));  // PyTorch, too, seeds with the lower 32 bits
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = 0; i + 1 < order.size(); ++i) std::swap(order[i], order[i + random() % (order.size() - i)]);
  return order;
}

DistributedSampler::DistributedSampler(DistributedSamplerSpec spec) : spec_(spec) {
  check_rank(spec.samples, spec.rank, spec.world_size);
  size_ = spec.drop_last ? spec.samples / spec.world_size : ceil_div(spec.samples, spec.world_size);
}

std::vector<std::int64_t> DistributedSampler::order(std::int64_t epoch) const {
  std::vector<std::int64_t> all;
  if (spec_.shuffle) {
    all = torch_permutation(spec_.samples, spec_.seed + static_cast<std::uint64_t>(epoch));
  } else {
    all.resize(static_cast<std::size_t>(spec_.samples));
    std::iota(all.begin(), all.end(), std::int64_t{0});
  }
  std::vector<std::int64_t> mine(static_cast<std::size_t>(size_));
  for (std::int64_t position = 0; position < size_; ++position) {
    const std::int64_t global = position * spec_.world_size + spec_.rank;
    mine[static_cast<std::size_t>(position)] = all[static_cast<std::size_t>(global % spec_.samples)];  // % pads
  }
  return mine;
}

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

std::optional<std::int64_t> StepSampler::step_at(std::int64_t position) const {
  if (position == end_position()) return steps();
  if (position < 0 || position > end_position() || position % samples_of_step() != 0) return std::nullopt;
  return position / samples_of_step();
}

std::int64_t StepSampler::number_in_step(std::int64_t index, std::int64_t offset) const {
  const StepShare share = step(index);
  return share.first + offset * share.stride;
}

std::int64_t StepSampler::end_position() const {
  const StepShare last = step(steps() - 1);
  return last.position + last.samples;
}

std::unique_ptr<StepSampler> make_distributed_steps(const StepSamplerSpec& spec) {
  return std::make_unique<DistributedSteps>(spec);
}

std::unique_ptr<StepSampler> make_sharded_steps(const StepSamplerSpec& spec, const ShardSpec& shards) {
  return std::make_unique<ShardedSteps>(spec, shards);
}

}  // namespace gradring::data
