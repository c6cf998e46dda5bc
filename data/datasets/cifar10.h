// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

/// Records of CIFAR-10's binary files: 32 x 32 RGB pixels in the order height, width, channel, and labels.
struct Cifar10Records {
  static constexpr std::size_t kSide = 32;
  static constexpr std::size_t kChannels = 3;
  static constexpr std::size_t kPixels = kSide * kSide * kChannels;
  static constexpr int kClasses = 10;

  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
};

/// Number of records in a file, by its size alone.
///
/// Errors    DataError if it cannot be opened, is empty, or ends inside a record.
std::size_t count_cifar10(const std::filesystem::path& path);

/// Appends the records of one file. A record is a label and three planes: red, green, blue.
///
/// Errors    DataError as count_cifar10, or if a label is not below 10.
/// Source    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009; the dataset's page, "Binary
///           version".
/// Example   tests/data/datasets/cifar10_test.cpp
void append_cifar10(const std::filesystem::path& path, Cifar10Records& records);

/// The files of a split in order, data_batch_1.bin to data_batch_5.bin or test_batch.bin, from the first of `folders`
/// that holds the first of them.
///
/// Errors    DataError if a file is missing: names the file and the folders searched, advises the command `fetch`. Says
///           so if only the Python version is found.
std::vector<std::filesystem::path> find_cifar10_files(Split split, const std::vector<std::filesystem::path>& folders,
                                                      const std::string& fetch);

/// CIFAR-10 from its binary files, concatenated.
///
/// Errors    DataError as append_cifar10, or if the files differ in size: one was truncated between two records.
std::unique_ptr<Dataset> open_cifar10(const std::vector<std::filesystem::path>& files);

}  // namespace gradring::data
