// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace gradring::data {

class Dataset;  // datasets/dataset.h

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// How one rank's positions of an epoch are cut into batches; the last one may be short. With windows, no batch crosses
/// from one window into the next: the last batch of each window may be short, too.
struct BatchGeometry {
  std::int64_t samples = 0;
  std::int64_t batch_size = 1;
  std::int64_t window = 0;  ///< samples per optimizer step; 0: no windows

  std::int64_t steps() const {
    if (window == 0) return ceil_div(samples, batch_size);
    return samples / window * in_window() + ceil_div(samples % window, batch_size);
  }
  /// First position of batch `step`.
  std::int64_t begin(std::int64_t step) const {
    if (window == 0) return std::min(step * batch_size, samples);
    return std::min(step / in_window() * window + step % in_window() * batch_size, samples);
  }
  std::int64_t end(std::int64_t step) const { return begin(step + 1); }

 private:
  std::int64_t in_window() const { return ceil_div(window, batch_size); }
};

/// torch.randperm(count) after torch.manual_seed(seed), on the CPU.
///
/// Errors    InvalidArgument for 214,748,364 or more, where PyTorch uses another algorithm.
std::vector<std::int64_t> torch_permutation(std::int64_t count, std::uint64_t seed);

/// The fields and defaults of PyTorch's DistributedSampler.
struct DistributedSamplerSpec {
  std::int64_t samples = 0;  ///< in the dataset
  int rank = 0;
  int world_size = 1;
  bool shuffle = true;
  std::uint64_t seed = 0;
  bool drop_last = false;  ///< true: drop the remainder; false: repeat some samples instead
};

/// PyTorch's DistributedSampler, index by index: one permutation for all ranks, seeded with seed + epoch, padded (or
/// cut) to a multiple of world_size, of which rank r takes r, r + world_size, ... A pure function of (seed, epoch,
/// rank), so that a run resumes at any position without stored state.
///
/// Threads   every member function may be called from any thread.
/// Errors    InvalidArgument if rank is outside the world (PyTorch's message), or as torch_permutation.
/// Cost      order: every rank draws all indices; 8 bytes per sample of the dataset.
/// Source    torch/utils/data/distributed.py; MT19937 (Matsumoto, Nishimura 1998); Fisher-Yates as in randperm_cpu.
/// Example   tests/data/loader/sampler_test.cpp
class DistributedSampler {
 public:
  explicit DistributedSampler(DistributedSamplerSpec spec);

  /// The size() indices that this rank visits in `epoch`.
  std::vector<std::int64_t> order(std::int64_t epoch) const;
  /// Positions of this rank, the same in every epoch.
  std::int64_t size() const { return size_; }
  /// Whether `position` of this rank's order repeats a sample, to give all ranks equally many.
  bool padding(std::int64_t position) const { return position * spec_.world_size + spec_.rank >= spec_.samples; }

 private:
  DistributedSamplerSpec spec_;
  std::int64_t size_ = 0;
};

struct SequentialShardSpec {
  std::int64_t samples = 0;  ///< in the dataset
  int rank = 0;
  int world_size = 1;
};

/// Consecutive samples for each rank, in the dataset's order, each sample on exactly one rank: exact evaluation needs
/// this. Shards differ by at most one sample; a rank may have none.
///
/// Errors    InvalidArgument if rank is outside the world.
class SequentialShard {
 public:
  explicit SequentialShard(SequentialShardSpec spec);

  /// The first of this rank's samples.
  std::int64_t begin() const { return begin_of_rank(spec_.rank); }
  /// The same in every epoch.
  std::vector<std::int64_t> order(std::int64_t epoch) const;
  std::int64_t size() const { return begin_of_rank(spec_.rank + 1) - begin(); }
  bool padding(std::int64_t) const { return false; }

 private:
  std::int64_t begin_of_rank(int rank) const;

  SequentialShardSpec spec_;
};

/// One step of an epoch: this rank's part and the global one.
struct StepShare {
  std::int64_t begin = 0;     ///< of this rank's samples, in its order
  std::int64_t end = 0;       ///< equals begin if this rank has none
  std::int64_t most = 0;      ///< samples of the rank that has the most
  std::int64_t samples = 0;   ///< of all ranks
  std::int64_t position = 0;  ///< of the first one, in the global order of the epoch
  std::int64_t first = 0;     ///< of this rank's samples, in the global order of the step
  std::int64_t stride = 1;    ///< there, from one of this rank's samples to the next
};

/// Assigns an epoch's samples to steps and ranks. A pure function of (seed, epoch, rank): a run resumes at any step,
/// and through the same steps on any number of ranks, with the position as its only state.
///
/// Threads   every member function may be called from any thread.
class StepSampler {
 public:
  virtual ~StepSampler() = default;
  /// "distributed" or "sharded".
  virtual std::string_view name() const = 0;
  /// The visits (kernels/ops/gather_batch/draws.h) of this rank in all steps of `epoch`: indices of samples, and how often
  /// the epoch has visited each before, over all ranks.
  virtual std::vector<std::int64_t> order(std::int64_t epoch) const = 0;
  /// As many visits of all ranks as the dataset has samples; empty if those are of each sample once.
  virtual std::vector<std::int64_t> visits(std::int64_t /*epoch*/) const { return {}; }
  /// Steps per epoch; the last one may be smaller.
  virtual std::int64_t steps() const = 0;
  virtual StepShare step(std::int64_t index) const = 0;
  /// The number, in the global order of a step, of the sample that follows `offset` others of this rank's there.
  virtual std::int64_t number_in_step(std::int64_t index, std::int64_t offset) const;
  /// Samples of all ranks in every step but the last.
  virtual std::int64_t samples_of_step() const = 0;
  /// The most samples that a rank has in a step.
  virtual std::int64_t most_of_rank() const = 0;
  /// The samples that this rank has in every micro-batch but the last of an epoch, of which each is a pass or several.
  virtual std::int64_t micro_batch_of_rank() const = 0;

  /// The step that begins at `position`, steps() for the end of the epoch; nullopt inside a step.
  std::optional<std::int64_t> step_at(std::int64_t position) const;
  std::int64_t end_position() const;
};

struct StepSamplerSpec {
  std::int64_t samples = 0;  ///< in the dataset
  int rank = 0;
  int world_size = 1;
  std::uint64_t seed = 0;
  std::int64_t samples_of_step = 1;  ///< of all ranks
};

/// As PyTorch's DistributedSampler without drop_last: every rank has equally many samples; if the dataset does not
/// divide, some samples come twice.
///
/// Errors    InvalidArgument as DistributedSampler, or if the ranks do not divide the samples of a step.
std::unique_ptr<StepSampler> make_distributed_steps(const StepSamplerSpec& spec);

struct ShardSpec {
  std::int64_t samples = 1;         ///< of a shard
  std::int64_t of_micro_batch = 0;  ///< samples of all ranks in a micro-batch; 0: a step is one
};

/// Every sample exactly once per epoch. A step takes the next samples of one torch.randperm permutation for all ranks,
/// micro-batch by micro-batch, each cut into shards of consecutive ones; each rank has consecutive whole shards of it.
/// Ranks may differ by a shard; a rank may have none. The shards of a micro-batch do not depend on the number of ranks.
///
/// Errors    InvalidArgument if the rank is outside the world, or if shards do not divide a micro-batch, or
///           micro-batches a step.
std::unique_ptr<StepSampler> make_sharded_steps(const StepSamplerSpec& spec, const ShardSpec& shards);

/// Visits all classes equally often: an epoch has as many samples as that of `steps`, and each class an equal part of
/// them, or one more. Samples of a small class come several times, each about equally often; of a large class other
/// samples in each epoch. Classes without samples do not count. Steps and ranks are those of `steps`: whatever the
/// number of ranks, an epoch has the same samples.
///
/// `dataset` is read when it is made only.
///
/// Cost      order: draws all samples of the epoch on every rank; 16 bytes for each.
/// Example   tests/data/loader/balanced_steps_test.cpp
std::unique_ptr<StepSampler> make_balanced_steps(std::unique_ptr<StepSampler> steps, const Dataset& dataset,
                                                 std::uint64_t seed);

}  // namespace gradring::data
