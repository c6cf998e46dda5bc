// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/datasets/dataset_facts.h"
#include "data/datasets/image_settings.h"

namespace gradring::data {

/// The names that open_dataset accepts.
std::span<const std::string_view> dataset_names();

/// Whether a name stands for files of the user's own: arrays, idx, folder.
bool is_own_data(std::string_view name);

/// Prints what `say` receives to stderr, with at most ten images named.
void print_remark(const std::string& text);

/// Which dataset to open, and where its files are.
struct DatasetSpec {
  std::string name;                     ///< one of dataset_names()
  std::filesystem::path data_dir = {};  ///< empty: not given
  ImageSettings images = {};            ///< of a folder
  OnBroken on_broken = {};              ///< the same
  /// Receives what the user should know: files of a folder that are not used, all images left out, classes of the
  /// user's own data without samples, another number of samples than CIFAR's.
  std::function<void(const std::string& text)> say = print_remark;
};

/// What is known of a dataset without reading its pixels. Needs no files where shape and classes are the same everywhere
/// (known_datasets.h).
///
/// Errors    as open_dataset.
DatasetFacts facts_of(const DatasetSpec& spec);

/// The folders that are searched for the files of a dataset, in order: `data_dir`/<name>, the subfolders that
/// torchvision or the archive create, `data_dir` itself.
std::vector<std::filesystem::path> dataset_folders(std::string_view name, const std::filesystem::path& data_dir);

/// Opens a dataset by name: from files in dataset_folders(), or generated (`digits`, which ignores `data_dir`).
///
/// `arrays` and `idx` (own_data.h) have their files in `data_dir` itself.
///
/// mnist and fashion-mnist have files of the same names. Files in a folder named after the other one are rejected; in a
/// folder of any other name they are accepted as the requested dataset.
///
/// Errors    InvalidArgument for an unknown name (suggests the nearest) or an empty `data_dir` where files are needed;
///           DataError if the files are missing, corrupt, or in the other dataset's folder.
/// Cost      reads the whole split into memory; a folder's is mapped (open_folder.h), from the cache of
///           default_image_cache, and says on stderr what it prepares.
std::unique_ptr<Dataset> open_dataset(const DatasetSpec& spec, Split split);
inline std::unique_ptr<Dataset> open_dataset(std::string_view name, Split split,
                                             const std::filesystem::path& data_dir) {
  return open_dataset({.name = std::string(name), .data_dir = data_dir}, split);
}

/// Whether there are files of test samples. Only data of the user's own may lack them.
///
/// Errors    DataError if the folder cannot be listed.
bool has_test_set(const DatasetSpec& spec);

/// The shell command that downloads a dataset to where open_dataset finds it:
/// "gradring data fetch mnist --data-dir datasets". An empty `data_dir` means the command's default.
std::string fetch_command(std::string_view name, const std::filesystem::path& data_dir);

/// The error message for a dataset that is read from files when no folder is given.
std::string needs_folder_message(std::string_view name);

}  // namespace gradring::data
