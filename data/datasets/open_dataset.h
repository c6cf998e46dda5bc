// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

/// The names that open_dataset accepts.
std::span<const std::string_view> dataset_names();

/// What is known of a dataset without its files.
struct KnownSet {
  std::string_view name;
  kernels::Shape sample;  ///< height, width, channels
  std::array<std::string_view, 10> classes;
};

/// Errors    InvalidArgument for a name that is not in dataset_names(); suggests the nearest.
const KnownSet& known_set(std::string_view name);

/// The folders that are searched for the files of a dataset, in order: `data_dir`/<name>, the subfolders that
/// torchvision or the archive create, `data_dir` itself.
std::vector<std::filesystem::path> dataset_folders(std::string_view name, const std::filesystem::path& data_dir);

/// Opens a dataset by name: from files in dataset_folders(), or generated (`digits`, which ignores `data_dir`).
///
/// mnist and fashion-mnist have files of the same names. Files in a folder named after the other one are rejected; in a
/// folder of any other name they are accepted as the requested dataset.
///
/// Errors    InvalidArgument for an unknown name (suggests the nearest) or an empty `data_dir` where files are needed;
///           DataError if the files are missing, corrupt, or in the other dataset's folder.
/// Cost      reads the whole split into memory.
std::unique_ptr<Dataset> open_dataset(std::string_view name, Split split, const std::filesystem::path& data_dir);

/// The shell command that downloads a dataset to where open_dataset finds it:
/// "gradring data fetch mnist --data-dir datasets". An empty `data_dir` means the command's default.
std::string fetch_command(std::string_view name, const std::filesystem::path& data_dir);

/// The error message for a dataset that is read from files when no folder is given.
std::string needs_folder_message(std::string_view name);

}  // namespace gradring::data
