// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "train/core/config/train_config.h"
#include "train/records/checkpoint/checkpoint.h"

namespace gradring::train {

/// How a reproducible training computes, as a checkpoint holds it: the options on which its bits depend
/// (Changes::rounding), by name, as TOML literals. `resolved` as resolved_computation, with a device without an index.
JsonValue computation_of(const TrainConfig& resolved);

/// The key of Checkpoint::about for computation_of.
inline constexpr const char* kComputation = "computation";

/// Compares how a training computed that a checkpoint was saved by with how this run does. Nothing happens unless both
/// are known.
///
/// Errors    UsageError if an option differs: which, and how to resume.
void check_computation(const nlohmann::ordered_json& about, const JsonValue& here, const std::filesystem::path& from);

}  // namespace gradring::train
