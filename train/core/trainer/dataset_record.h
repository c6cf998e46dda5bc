// SPDX-License-Identifier: Apache-2.0
// What a checkpoint records of the data set of its training: what inference needs to know without the data.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/datasets/dataset_facts.h"

namespace gradring::train {

/// The key of Checkpoint::about for the facts of the data set.
inline constexpr const char* kDataset = "dataset";

/// name, shape, class_names, mean, std.
nlohmann::ordered_json to_json(const data::DatasetFacts& facts);

/// The facts that a checkpoint records; nothing if it has none, as one of an earlier version.
///
/// Errors    CheckpointError with `from` if a value is missing or invalid.
std::optional<data::DatasetFacts> recorded_dataset(const nlohmann::ordered_json& about,
                                                   const std::filesystem::path& from);

/// Checks that samples are of the classes that a model was trained on, where both are data sets of one name.
///
/// Errors    CheckpointError with `from` that names the first class that differs.
void check_classes(const data::DatasetFacts& trained, std::span<const std::string> here, std::string_view name,
                   const std::filesystem::path& from);

/// Checks that a training resumes with the classes and the normalization that it had.
///
/// Errors    as check_classes; UsageError with the --normalize that it had.
void check_dataset(const data::DatasetFacts& saved, const data::DatasetFacts& here, const std::filesystem::path& from);

}  // namespace gradring::train
