// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

struct IdxFiles {
  std::string name;  ///< of the data set
  std::filesystem::path images;
  std::filesystem::path labels;
  int classes = 10;
};

/// A data set from one file of images and one of labels.
///
/// Errors    DataError as read_idx, or if the counts differ, a label is not below `classes`, or there are no images.
std::unique_ptr<Dataset> open_idx(const IdxFiles& files);

/// Finds the two files of a split as MNIST names them (train-images-idx3-ubyte, t10k-labels-idx1-ubyte, ...), plain or
/// .gz, also with '.' before "idx" as some mirrors write it, in the first of `folders` that has the images.
///
/// Errors    DataError if a file is missing; it lists every name that was looked for, and where, and advises `fetch`, a
///           command. Its path is the first folder that is there, else the last of `folders`.
IdxFiles find_idx_files(Split split, const std::vector<std::filesystem::path>& folders, const std::string& fetch);

}  // namespace gradring::data
