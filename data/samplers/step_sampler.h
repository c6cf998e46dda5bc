// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace gradring::data {

/// What one step of an epoch is for a rank, and for all.
struct StepShare {
  std::int64_t begin = 0;     ///< of this rank's samples, in its order
  std::int64_t end = 0;       ///< behind the last one; begin, if it has none
  std::int64_t most = 0;      ///< samples of the rank that has the most
  std::int64_t samples = 0;   ///< of all ranks together
  std::int64_t position = 0;  ///< of the first one, in the epoch's order of all ranks together
};

/// Deals an epoch's samples to steps and ranks. A pure function of (seed, epoch, rank): a run resumes at any step, and by the
/// same steps on any number of ranks, without stored state but the position.
///
/// Threads   every member function may be called from any thread.
class StepSampler {
 public:
  virtual ~StepSampler() = default;
  /// "distributed" or "sharded".
  virtual std::string_view name() const = 0;
  /// The samples that this rank visits in `epoch`, in all its steps.
  virtual std::vector<std::int64_t> order(std::int64_t epoch) const = 0;
  /// How many steps an epoch has; the last one may be smaller.
  virtual std::int64_t steps() const = 0;
  virtual StepShare step(std::int64_t index) const = 0;
  /// The samples of all ranks in a step, but the last.
  virtual std::int64_t samples_of_step() const = 0;
  /// The most samples that a rank has in a step.
  virtual std::int64_t most_of_rank() const = 0;

  /// The step that begins at `position`, steps() for the epoch's end; none if it is within a step.
  std::optional<std::int64_t> step_at(std::int64_t position) const {
    if (position == end_position()) return steps();
    if (position < 0 || position > end_position() || position % samples_of_step() != 0) return std::nullopt;
    return position / samples_of_step();
  }
  std::int64_t end_position() const {
    const StepShare last = step(steps() - 1);
    return last.position + last.samples;
  }
};

struct StepSamplerSpec {
  std::int64_t samples = 0;  ///< in the data set
  int rank = 0;
  int world_size = 1;
  std::uint64_t seed = 0;
  std::int64_t samples_of_step = 1;  ///< of all ranks together
};

/// PyTorch's way (DistributedSampler without drop_last): each rank has as many samples as any other; where the data set does
/// not divide, some samples come twice.
///
/// Errors    InvalidArgument as DistributedSampler, or if the samples of a step do not divide by the ranks.
std::unique_ptr<StepSampler> make_distributed_steps(const StepSamplerSpec& spec);

/// The exact way: every sample once an epoch. A step takes the next samples of one permutation for all ranks, which is
/// torch.randperm's; they are cut into shards of `shard` consecutive ones, and each rank has whole shards, one behind
/// another. Ranks may differ by a shard; a rank may have none. Which shards a step has does not depend on the ranks.
///
/// Errors    InvalidArgument if the rank is outside the world, or `shard` does not divide the samples of a step.
std::unique_ptr<StepSampler> make_sharded_steps(const StepSamplerSpec& spec, std::int64_t shard);

}  // namespace gradring::data
