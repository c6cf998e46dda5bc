// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/options/commands.h"

namespace gradring::train {

/// `gradring cuda`: CUDA programs on simulated GPUs; its actions are the others.
extern const Command kCudaCommand;
extern const Command kCudaRun, kCudaNvcc;

}  // namespace gradring::train
