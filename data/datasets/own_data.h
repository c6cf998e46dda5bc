// SPDX-License-Identifier: Apache-2.0
// Datasets of files of the user's own, whose shape and classes only the files know.
#pragma once

#include <filesystem>
#include <memory>

#include "data/datasets/dataset.h"
#include "data/datasets/dataset_facts.h"

namespace gradring::data {

/// Advice where test files are missing.
inline constexpr const char* kNoTestFilesAdvice =
    "put the test files there, or hold a part of the training set out with --val-split";

/// The name of a dataset of NumPy arrays: train_images.npy, train_labels.npy, test_images.npy and test_labels.npy in a
/// folder.
///
///   images   uint8, or float32 or float64 from 0 to 1: [N, height, width] or [N, height, width, channels], 1 to 4 of
///            them
///   labels   integers from 0: [N] or [N, 1]
///
/// The training labels say how many classes there are; kClassNamesFile may name them.
inline constexpr const char* kArrays = "arrays";

/// From the header of the training images, and the training labels.
///
/// Errors    as open_arrays.
DatasetFacts facts_of_arrays(const std::filesystem::path& folder);

/// Whether there is a file of test images or labels.
bool has_test_arrays(const std::filesystem::path& folder);

/// Errors    DataError if a file is missing, as NpyFile, or if the arrays have other shapes, numbers of samples or
///           labels than these; as class_names_in.
/// Cost      memory: a byte for each pixel.
/// Example   tests/data/datasets/arrays_test.cpp
std::unique_ptr<Dataset> open_arrays(const std::filesystem::path& folder, Split split);

/// The name of a dataset of IDX files with classes of its own, such as EMNIST or KMNIST: grey images in
/// train-images-idx3-ubyte and t10k-images-idx3-ubyte, labels in train-labels-idx1-ubyte and t10k-labels-idx1-ubyte,
/// plain or .gz. All four may have the same prefix ("emnist-letters-"), and "test" may stand for "t10k".
///
/// The training labels say how many classes there are; kClassNamesFile may name them.
inline constexpr const char* kOwnIdx = "idx";

/// From the header of the training images, and the training labels.
///
/// Errors    as open_own_idx.
DatasetFacts facts_of_own_idx(const std::filesystem::path& folder);

/// Whether there is a file of test images.
///
/// Errors    DataError if the folder cannot be listed.
bool has_test_idx(const std::filesystem::path& folder);

/// Errors    DataError if a file is missing, or there are several for a split; as open_idx and class_names_in.
/// Cost      memory: a byte for each pixel.
/// Example   tests/data/datasets/own_idx_test.cpp
std::unique_ptr<Dataset> open_own_idx(const std::filesystem::path& folder, Split split);

}  // namespace gradring::data
