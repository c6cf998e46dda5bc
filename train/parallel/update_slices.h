// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "nn/parameter/parameter.h"
#include "train/optim/optimizer.h"
#include "train/parallel/shards.h"
#include "train/precision/compute_weights.h"

namespace gradring::train {

/// Which parameters weight decay is for: PyTorch's usual two parameter groups, if biases are left alone.
std::vector<bool> decaying(std::span<const nn::Parameter> parameters, const OptimizerSpec& optimizer);

/// What this rank's optimizer is to update: its shards, cut where one parameter decays and the next does not, and neighbours in
/// all respects as one. Its state is packed.
std::vector<UpdateSlice> update_slices(const Shards& shards, const ComputeWeights& weights,
                                       const ShardPointers& gradients, const std::vector<bool>& decaying);

}  // namespace gradring::train
