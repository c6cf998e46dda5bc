// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/step_sizes.h"

#include <fmt/format.h>

#include "train/config/usage_error.h"

namespace gradring::train {

StepSizes step_sizes(const TrainConfig& config, int ranks) {
  const bool sharded = config.sampler == "sharded" || (config.sampler == "auto" && config.reproducible);
  const StepSizes sizes{
      .sharded = sharded,
      .of_all = config.global_batch > 0 ? config.global_batch : config.batch_size * config.accumulate * ranks,
      .pass = sharded && config.shard_size > 0 ? config.shard_size : config.batch_size};
  if (sharded && sizes.of_all % sizes.pass != 0)
    throw UsageError(
        fmt::format("a step's {} samples are no whole number of shards of {}: choose --global-batch and --shard-size "
                    "so that they are",
                    sizes.of_all, sizes.pass));
  if (!sharded && sizes.of_all % ranks != 0)
    throw UsageError(
        fmt::format("--global-batch {} cannot be dealt evenly to {} ranks: take another, or --sampler sharded",
                    sizes.of_all, ranks));
  return sizes;
}

std::unique_ptr<data::StepSampler> make_steps(const StepSizes& sizes, std::int64_t samples, std::uint64_t seed,
                                              int rank, int ranks) {
  const data::StepSamplerSpec spec{
      .samples = samples, .rank = rank, .world_size = ranks, .seed = seed, .samples_of_step = sizes.of_all};
  return sizes.sharded ? data::make_sharded_steps(spec, sizes.pass) : data::make_distributed_steps(spec);
}

bool meet_in_every_pass(const TrainConfig& config) {
  return config.zero == 3 || (config.zero == 2 && (config.sync_every_pass || config.reproducible));
}

}  // namespace gradring::train
