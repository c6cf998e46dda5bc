// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/setup/named_checkpoint.h"

namespace gradring::train {

/// Puts the averaged weights (--ema) in the place of the weights, under their names.
///
/// Errors    CheckpointError if there are none.
void take_averaged(NamedTensors& named);

}  // namespace gradring::train
