// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "train/config/train_config.h"
#include "train/feed/loader_feed.h"
#include "train/trainer/replica.h"

namespace gradring::train {

/// What the options of a run of `steps` steps mean for a replica on `device`, whose steps have at most `most_of_rank`
/// samples in passes of at most `pass`.
///
/// Errors    UsageError for options that do not fit the device or the steps.
ReplicaSpec replica_spec(const TrainConfig& config, const kernels::Device& device, std::int64_t steps,
                         std::int64_t most_of_rank, std::int64_t pass);

/// Brings `spec.dataset` to a replica; its type is the replica's.
///
/// Errors    DeviceError if the data set is to lie on the device, and does not fit there.
std::unique_ptr<BatchFeed> make_feed(const TrainConfig& config, FeedSpec spec, Replica& replica);

}  // namespace gradring::train
