// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace gradring::data {

/// What one file of CIFAR-10's binary form holds: 32 x 32 pixels of red, green and blue each, in the order height, width,
/// channel.
struct Cifar10Records {
  static constexpr std::size_t kSide = 32;
  static constexpr std::size_t kChannels = 3;
  static constexpr std::size_t kPixels = kSide * kSide * kChannels;
  static constexpr int kClasses = 10;

  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
};

/// How many records a file holds, by its size alone.
///
/// Errors    DataError, naming the file and what to do, if it cannot be opened, is empty, or ends inside a record.
std::size_t count_cifar10(const std::filesystem::path& path);

/// Appends the records of one file to `records`. A record is a label and three planes: all of red, of green, of blue.
///
/// Errors    DataError as count_cifar10, or if a label is not below 10.
/// Cost      3,072 bytes a record, and one record more while reading.
/// Source    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009; the data set's page, "Binary version".
/// Example   tests/data/datasets/cifar10/cifar10_file_test.cpp
void append_cifar10(const std::filesystem::path& path, Cifar10Records& records);

}  // namespace gradring::data
