// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "train/launch/worker_environment.h"

namespace gradring::train {

/// How many NVIDIA GPUs a worker would see: those that CUDA_VISIBLE_DEVICES lists where it is set, else the driver's device
/// files. Asks no library, so that the launcher holds no context on any of them.
int visible_gpus(const VariableLookup& lookup, const std::filesystem::path& devices = "/dev");

}  // namespace gradring::train
