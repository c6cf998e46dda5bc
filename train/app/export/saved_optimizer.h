// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/models/model.h"
#include "train/core/setup/start.h"
#include "train/records/checkpoint/torch_optimizer.h"

namespace gradring::train {

/// The optimizer of a checkpoint, with the learning rate of the next step, as PyTorch saves it.
///
/// Errors    UsageError if `named` is a file, which holds no optimizer; CheckpointError if the settings are unknown or
///           contradict the tensors.
TorchOptimizer saved_optimizer(const NamedTensors& named, const nn::Model& model);

}  // namespace gradring::train
