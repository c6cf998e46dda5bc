// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "data/samplers/step_sampler.h"
#include "train/config/train_config.h"

namespace gradring::train {

/// How many samples make what, by the options.
struct StepSizes {
  bool sharded = false;  ///< each sample once an epoch, in whole shards of `pass`; else PyTorch's DistributedSampler
  std::int64_t of_all = 64;  ///< in a step, of all ranks together
  std::int64_t pass = 64;    ///< at most in one forward and backward pass
};

/// Errors    UsageError if the options do not fit each other in a world of `ranks`.
StepSizes step_sizes(const TrainConfig& config, int ranks);

/// Who deals `samples` samples by these sizes to the rank.
std::unique_ptr<data::StepSampler> make_steps(const StepSizes& sizes, std::int64_t samples, std::uint64_t seed,
                                              int rank, int ranks);

/// Whether ranks exchange something in every pass of a step: weights (ZeRO 3), or sums that none keeps whole. Then who has fewer
/// samples takes part in the others' passes.
bool meet_in_every_pass(const TrainConfig& config);

}  // namespace gradring::train
