// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "train/optim/optimizer.h"
#include "train/parallel/shards.h"
#include "train/precision/compute_weights.h"

namespace gradring::train {

/// What this rank's optimizer is to update: its shards, neighbours in all respects as one. Its state is packed.
std::vector<UpdateSlice> update_slices(const Shards& shards, const ComputeWeights& weights,
                                       const ShardPointers& gradients);

}  // namespace gradring::train
