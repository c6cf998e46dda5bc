// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "comm/process_group.h"
#include "train/config/train_config.h"

namespace gradring::train {

/// Compares what the ranks were asked to do, before any of them sets something up. Blocks until all have come.
///
/// `cpu_code` is cpu_code() of the rank's device: replicas that round differently would not stay equal.
///
/// Errors    ReplicaError that names each option that differs and its values; comm::CommError.
void check_same_settings(comm::ProcessGroup& group, const TrainConfig& config, const std::string& cpu_code);

/// What differs between the settings of the ranks (to_toml's texts, by rank): "batch-size is 8 on rank 0 but 16 on rank 1".
/// Empty if nothing does.
std::string describe_differences(std::span<const std::string> settings);

}  // namespace gradring::train
