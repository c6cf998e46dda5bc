// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

/// A file below the folder of a split that is an image by its name.
struct ImageFile {
  std::string path;  ///< from the split's folder: "cat/1.jpg"
  int label = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  ///< nanoseconds; 0, as `bytes`, for a link to nothing
  std::int64_t changed = 0;   ///< of its inode
};

/// The images of one split.
struct ImageListing {
  std::filesystem::path folder;      ///< "photos/train"
  std::vector<std::string> classes;  ///< the index is the label
  std::vector<ImageFile> files;
  std::int64_t others = 0;  ///< files of other kinds, which are left out
  std::string one_other;    ///< one of them: "cat/notes.txt", "cat/1.jpg (not a regular file)"
};

/// The folder of a split: `folder`/train, or `folder`/test, or `folder`/val without test; empty if these are
/// missing.
std::filesystem::path split_folder(const std::filesystem::path& folder, Split split);

/// The names of the folders in a split's folder, sorted by their bytes: the classes, as those of torchvision's
/// ImageFolder. Hidden ones (.git) are left out.
///
/// Errors    DataError if the folder cannot be listed, or has fewer than two.
std::vector<std::string> class_folders_in(const std::filesystem::path& split_folder);

/// The images of a split, in ImageFolder's order: by class, then by folder, then by name. Images are files, or links to
/// files, whose names end with .jpg, .jpeg or .png in small or capital letters, in the folder of a class and below it.
/// Hidden files and folders are left out.
///
/// Errors    DataError if a folder cannot be listed, belongs to none of `classes`, or is a link to a folder above it;
///           if a class of the training set has no image, or the split has none.
/// Cost      one stat a file: about 0.5 s for 100,000.
ImageListing list_images(const std::filesystem::path& split_folder, Split split, std::span<const std::string> classes);

}  // namespace gradring::data
