// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/runtime/shape.h"
#include "train/view/runs/run.h"

namespace gradring::train {

/// A test sample that the model takes for another class.
struct Misclassified {
  std::int64_t index = 0;  ///< in the test set
  int label = 0;
  int predicted = 0;
  double probability = 0;        ///< of the predicted class
  double label_probability = 0;  ///< of the label
  std::vector<std::uint8_t> pixels{};
};

/// The weights of the first convolution as images (page::shaded_filters).
struct FilterImages {
  std::string layer{};  ///< "conv_layers.0"
  std::uint32_t size = 0;
  std::uint32_t channels = 1;                       ///< 1 or 3
  double largest = 0;                               ///< magnitude
  std::vector<std::vector<std::uint8_t>> images{};  ///< one per filter, [size, size, channels]
};

/// What a checkpoint of a run predicts for the test set.
struct ModelPictures {
  std::filesystem::path checkpoint{};
  std::int64_t step = 0;
  bool is_best = false;  ///< otherwise the newest
  std::string dataset{};
  std::string_view split{};  ///< the name of the evaluated split (final_split)
  std::vector<std::string> classes{};
  std::int64_t samples = 0;
  double accuracy = 0;
  kernels::Shape sample{};                             ///< height, width, channels
  std::vector<std::vector<std::int64_t>> confusion{};  ///< [label][predicted] samples
  std::vector<Misclassified> worst{};                  ///< those to whose label the model gives the least probability
  FilterImages filters{};
};

/// Evaluates the best checkpoint of a run, or its newest valid one, on the split that its training ended with.
///
/// `data_dir` as --data-dir; empty: for public datasets GRADRING_DATA_DIR, else the folder of the training.
///
/// Errors    CheckpointError, FileError, DataError, UsageError: checkpoint or dataset are missing or damaged.
/// Cost      an evaluation of that split on the default device.
ModelPictures make_pictures(const std::filesystem::path& run_dir, const std::string& data_dir);

/// Why there is no picture of a model: its checkpoint or the dataset is missing.
struct NoPictures {
  std::string reason{};
};

/// A run and what a report says about it besides its events.
struct ReportedRun {
  Run run{};
  std::variant<NoPictures, ModelPictures> pictures{};
  std::string command{};  ///< the shell command that starts the run
};

/// The page of one run, or of several: then configuration differences first, and their curves in one plot.
///
/// Shapes    at least one run.
/// Returns   HTML, which needs no other file and no script.
std::string html_report(std::span<const ReportedRun> runs);

}  // namespace gradring::train
