// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

/// The files of a split, in their order: data_batch_1.bin to data_batch_5.bin, or test_batch.bin; in the first of `folders`
/// that has the first of them.
///
/// Errors    DataError if one is missing; it says what was looked for, and where, and advises `fetch`, a command. Where only
///           the Python version lies, it says so.
std::vector<std::filesystem::path> find_cifar10_files(Split split, const std::vector<std::filesystem::path>& folders,
                                                      const std::string& fetch);

/// CIFAR-10 from its binary files, one after the other: images of 32 x 32 x 3, classes 0 to 9.
///
/// Errors    DataError as append_cifar10, or if the files differ in size: those of the original hold equally many records, so
///           one was cut short between two of them.
/// Cost      reads the files once, into memory that is allocated once.
std::unique_ptr<Dataset> open_cifar10(const std::vector<std::filesystem::path>& files);

}  // namespace gradring::data
