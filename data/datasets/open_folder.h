// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/datasets/image_cache.h"

namespace gradring::data {

/// The name of a dataset of image files.
inline constexpr const char* kFolder = "folder";

/// A dataset of image files: `folder`/train/CLASS/*.jpg, and `folder`/test or `folder`/val likewise.
struct FolderSpec {
  std::filesystem::path folder;
  ImageSettings settings;
  OnBroken on_broken = OnBroken::fail;
  std::filesystem::path cache;  ///< the folder of the ImageCache
  ImageCache::Say say;          ///< receives what the user should know of the files, in every process
  ImageCache::Say progress;     ///< receives what the cache does, in the process that fills it
};

/// The classes, in the order of their labels: the names of the folders in `folder`/train. Reads no image.
///
/// Errors    DataError if that folder is missing, or as class_folders_in.
std::vector<std::string> folder_class_names(const std::filesystem::path& folder);

/// Whether there is a folder of test images, test or val.
bool has_test_folder(const std::filesystem::path& folder);

/// Opens a split.
///
/// Errors    DataError if its folder is missing, or as list_images and ImageCache::open; if images cannot be read,
///           names the first of them, unless they are skipped: then `say` receives their number and all names.
/// Cost      the first time, each image is decoded; then one stat a file.
std::unique_ptr<Dataset> open_folder(const FolderSpec& spec, Split split);

/// The text with at most ten images named, for a terminal.
std::string shortened(const std::string& text);

}  // namespace gradring::data
