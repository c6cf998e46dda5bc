// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "comm/process_group.h"
#include "train/config/train_config.h"

namespace gradring::train {

/// Compares what the ranks were asked to do, before any of them sets something up. Blocks until all have come.
///
/// Errors    ReplicaError that names each option that differs and its values; comm::CommError.
void check_same_settings(comm::ProcessGroup& group, const TrainConfig& config);

/// Compares recorded_cpu_level() of the ranks' devices: replicas that round differently would not stay equal. Blocks until all
/// have come.
///
/// Errors    ReplicaError that names two levels and their ranks; comm::CommError.
void check_same_cpu_level(comm::ProcessGroup& group, const std::string& level);

/// What differs between the settings of the ranks (to_toml's texts, by rank): "batch-size is 8 on rank 0 but 16 on rank 1".
/// Empty if nothing does.
std::string describe_differences(std::span<const std::string> settings);

}  // namespace gradring::train
