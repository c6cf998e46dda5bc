// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "data/datasets/dataset.h"
#include "train/config/train_config.h"
#include "train/feed/batch_feed.h"
#include "train/trainer/replica.h"

namespace gradring::train {

/// What the options of a run of `steps` steps mean for a replica on `device`.
///
/// Errors    UsageError for options that do not fit the device or the steps.
ReplicaSpec replica_spec(const TrainConfig& config, const kernels::Device& device, std::int64_t steps);

/// Brings `dataset` to a replica. All that is given must outlive the feed.
///
/// Errors    DeviceError if the data set is to lie on the device, and does not fit there.
std::unique_ptr<BatchFeed> make_feed(const TrainConfig& config, const data::Dataset& dataset, kernels::Device& device,
                                     const kernels::KernelSet& kernels, Replica& replica);

}  // namespace gradring::train
