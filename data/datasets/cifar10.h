// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

/// The files of a split in order, data_batch_1.bin to data_batch_5.bin or test_batch.bin, from the first of `folders`
/// that holds the first of them.
///
/// Errors    DataError if a file is missing: names the file and the folders searched, advises the command `fetch`. Says
///           so if only the Python version is found.
std::vector<std::filesystem::path> find_cifar10_files(Split split, const std::vector<std::filesystem::path>& folders,
                                                      const std::string& fetch);

/// CIFAR-10 from its binary files, concatenated. A record is a label and three planes: red, green, blue; a sample has
/// its pixels in the order height, width, channel.
///
/// Errors    DataError if a file cannot be opened, is empty, ends inside a record or has a label that is not below 10,
///           or if the files differ in size: one was truncated between two records.
/// Source    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009; the dataset's page, "Binary
///           version".
/// Example   tests/data/datasets/cifar10_test.cpp
std::unique_ptr<Dataset> open_cifar10(const std::vector<std::filesystem::path>& files);

}  // namespace gradring::data
