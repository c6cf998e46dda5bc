// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

/// A file below a folder that is an image by its name.
struct ImageFile {
  std::string path;  ///< from the folder: "cat/1.jpg"
  int label = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  ///< nanoseconds; 0, as `bytes`, for a link to nothing
  std::int64_t changed = 0;   ///< of its inode
};

/// The images of one split, or of any folder.
struct ImageListing {
  std::filesystem::path folder;      ///< "photos/train"
  std::vector<std::string> classes;  ///< the index is the label; empty without classes
  std::vector<ImageFile> files;
  std::int64_t others = 0;  ///< files of other kinds, which are left out
  std::string one_other;    ///< one of them: "cat/notes.txt", "cat/1.jpg (not a regular file)"
};

/// Whether a file is an image by its name: it ends with .jpg, .jpeg or .png in small or capital letters.
bool is_image_name(std::string_view name);

/// "2 files are not used, such as notes.txt: images are .jpg, .jpeg or .png files", for `listing.others`.
std::string describe_others(const ImageListing& listing);

/// The folder of a split: `folder`/train, or `folder`/test, or `folder`/val without test; empty if these are
/// missing.
std::filesystem::path split_folder(const std::filesystem::path& folder, Split split);

/// The names of the folders in a split's folder, sorted by their bytes: the classes, as those of torchvision's
/// ImageFolder. Hidden ones (.git) are left out.
///
/// Errors    DataError if the folder cannot be listed, or has fewer than two.
std::vector<std::string> class_folders_in(const std::filesystem::path& split_folder);

/// The images in a folder and below it: by folder, then by name, all labelled 0. They are files, or links to files,
/// with an is_image_name. Hidden files and folders are left out; links to folders are followed.
///
/// Errors    DataError if a folder cannot be listed or is a link to a folder above it, or if there is no image.
/// Cost      one stat a file: about 0.5 s for 100,000.
ImageListing list_images(const std::filesystem::path& folder);

/// The images of a split, in ImageFolder's order: by class, then as list_images of the folder of the class.
///
/// `classes` are those of class_folders_in the training set, so they are sorted.
///
/// Errors    as list_images of a folder; DataError if a folder belongs to none of `classes`, if a class of the training
///           set has no image, or the split has none.
ImageListing list_images(const std::filesystem::path& split_folder, Split split, std::span<const std::string> classes);

}  // namespace gradring::data
