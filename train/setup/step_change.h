// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/checkpoint/checkpoint.h"
#include "train/config/train_config.h"

namespace gradring::train {

/// What to tell a person whose steps have another number of samples than those of the run that saved the checkpoint: often
/// the number of ranks has changed. Empty if they have as many, or it does not say.
///
/// Errors    as step_sizes.
std::string step_change(const Checkpoint& checkpoint, const TrainConfig& config, int ranks);

}  // namespace gradring::train
