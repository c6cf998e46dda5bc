// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

struct IdxArray {
  std::vector<std::int64_t> extents;
  std::vector<std::uint8_t> values;
};

/// An IDX file of unsigned bytes with `rank` extents, plain or .gz: two zero bytes, 0x08 for unsigned bytes, the number
/// of extents, each extent as 32 bits big-endian, the values in row-major order.
///
/// Errors    DataError if it cannot be opened, is not such a file, is shorter or longer than its header says, is a corrupt
///           .gz, or needs more memory than is available.
/// Cost      memory: the size of the values for a plain file; for a .gz at most about twice the size of those that
///           arrive, whatever the header promises. It is inflated no further than one byte past them.
/// Source    the description on the MNIST page (LeCun, Cortes, Burges 1998).
IdxArray read_idx(const std::filesystem::path& path, int rank);

/// Those of its header.
///
/// Errors    as read_idx, without those of the values.
std::vector<std::int64_t> idx_extents(const std::filesystem::path& path, int rank);

struct IdxFiles {
  std::string name;  ///< of the dataset
  std::filesystem::path images;
  std::filesystem::path labels;
  int classes = 10;
  std::vector<std::string> class_names = {};  ///< empty: numbered_classes()
};

/// A dataset from one file of images and one of labels.
///
/// Errors    DataError as read_idx, or if the counts differ, a label is not below `classes`, or there are no images.
std::unique_ptr<Dataset> open_idx(const IdxFiles& files);

/// The names that mirrors use for a file with one of MNIST's names, packed or not, in the order in which readers prefer
/// them: train-images-idx3-ubyte, train-images.idx3-ubyte. Only the name itself if it is another one,
/// none if it is empty.
std::vector<std::string> idx_spellings(std::string_view name);

/// Finds the two files of a split by MNIST's names (train-images-idx3-ubyte, t10k-labels-idx1-ubyte, ...), plain or
/// .gz, also with '.' before "idx" as some mirrors have it, in the first of `folders` that has the images.
///
/// Errors    DataError if a file is missing: lists the names and folders searched, advises the command `fetch`. Its
///           path is the first folder that exists, else the last of `folders`.
IdxFiles find_idx_files(Split split, const std::vector<std::filesystem::path>& folders, const std::string& fetch);

/// CIFAR-10 or CIFAR-100.
enum class Cifar : std::uint8_t { ten, hundred };

/// The files of a split in order, data_batch_1.bin to data_batch_5.bin or test_batch.bin, of CIFAR-100 train.bin or
/// test.bin, from the first of `folders` that holds the first of them.
///
/// Errors    DataError if a file is missing: names the file and the folders searched, advises the command `fetch`. Says
///           so if only the Python version is found.
std::vector<std::filesystem::path> find_cifar_files(Cifar which, Split split,
                                                    const std::vector<std::filesystem::path>& folders,
                                                    const std::string& fetch);

/// CIFAR-10 or CIFAR-100 from its binary files, concatenated. A record is a label (of CIFAR-100 the superclass, then
/// the class, which counts) and three planes: red, green, blue; a sample has its pixels in the order height, width,
/// channel.
///
/// Errors    DataError if a file cannot be opened, is empty, ends inside a record or has a label above the last class,
///           or if the files differ in size: one was truncated between two records.
/// Source    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009; the dataset's page, "Binary
///           version".
/// Example   tests/data/datasets/cifar10_test.cpp
std::unique_ptr<Dataset> open_cifar(Cifar which, const std::vector<std::filesystem::path>& files);

}  // namespace gradring::data
