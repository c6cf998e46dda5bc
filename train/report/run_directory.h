// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "train/config/train_config.h"

namespace gradring::train {

/// runs/<dataset>-<model>-<time>, in local time to the second, with a number behind it if that is taken.
std::filesystem::path default_run_dir(const TrainConfig& config);

/// Makes the folder of a run, and config.resolved.toml in it. Nothing is left behind if that fails.
///
/// Errors    UsageError if the folder is there already; EnvironmentError if it cannot be made or written.
void make_run_dir(const std::filesystem::path& path, const TrainConfig& config);

}  // namespace gradring::train
