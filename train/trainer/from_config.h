// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "train/config/train_config.h"
#include "train/feed/loader_feed.h"
#include "train/memory/memory_plan.h"
#include "train/trainer/replica.h"
#include "train/trainer/step_sizes.h"

namespace gradring::train {

/// Evaluation needs no gradients, so its batch can be larger than training's without more memory.
inline constexpr std::int64_t kEvalBatch = 250;

/// Whether the training set lies on the device (--resident). auto: on a GPU, which has the room, and waits for copies more
/// than for anything else; a CPU reads the loader's memory in place.
bool is_resident(const TrainConfig& config, const kernels::Device& device);

/// The steps of a whole run, if nothing ends it early.
std::int64_t all_steps(const TrainConfig& config, const data::StepSampler& sampler);

/// What the options mean for a replica on `device`, whose samples are dealt like that.
///
/// Errors    UsageError for options that do not fit the device or the steps.
ReplicaSpec replica_spec(const TrainConfig& config, const kernels::Device& device, const StepSizes& sizes,
                         const data::StepSampler& sampler);

/// What `gradring plan` asks: what a rank's trainer would allocate.
///
/// Errors    as replica_spec.
MemoryPlanSpec memory_plan_spec(const TrainConfig& config, const kernels::Device& device,
                                const data::Dataset& train_set, int world_size);

/// Brings `spec.dataset` to a replica; its type is the replica's.
///
/// Errors    DeviceError if the data set is to lie on the device, and does not fit there.
std::unique_ptr<BatchFeed> make_feed(const TrainConfig& config, FeedSpec spec, Replica& replica);

}  // namespace gradring::train
