// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

/// The names that open_dataset knows.
std::span<const std::string_view> dataset_names();

/// Where the files of a data set are looked for, in this order: `data_dir`/<name>, where torchvision or the archive puts them
/// below `data_dir`, `data_dir` itself.
std::vector<std::filesystem::path> dataset_folders(std::string_view name, const std::filesystem::path& data_dir);

/// Opens a data set by its name. Those that live in files are looked for in dataset_folders; `digits` is made on the spot
/// and needs no folder.
///
/// mnist and fashion-mnist have files of the same names. Where they are found in a folder that bears the other set's
/// name, they are taken for the other set's and refused; in a folder of any other name they are taken for what was
/// asked.
///
/// Errors    InvalidArgument for an unknown name (names the nearest), or for an empty `data_dir` where files are
///           needed; DataError if the files are missing, damaged, or another set's by their folder.
/// Cost      reads the whole split into memory.
std::unique_ptr<Dataset> open_dataset(std::string_view name, Split split, const std::filesystem::path& data_dir);

}  // namespace gradring::data
