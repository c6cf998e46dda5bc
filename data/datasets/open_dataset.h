// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "data/datasets/dataset.h"

namespace gradring::data {

/// The names that open_dataset knows.
std::span<const std::string_view> dataset_names();

/// Opens a data set by its name. Those that live in files are looked for in `data_dir` itself, in `data_dir`/<name>,
/// and where torchvision puts them below it; `digits` is made on the spot and needs no folder.
///
/// Errors    InvalidArgument for an unknown name (names the nearest), or for an empty `data_dir` where files are
/// needed;
///           DataError if the files are missing or damaged.
/// Cost      reads the whole split into memory.
std::unique_ptr<Dataset> open_dataset(std::string_view name, Split split, const std::filesystem::path& data_dir);

}  // namespace gradring::data
