// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/datasets/dataset.h"
#include "train/bench/measured_training.h"

namespace gradring::train::bench {

/// The text of train/bench/pytorch_training.py, embedded in the binary.
extern const char* const kPyTorchScript;

/// A dataset in the form that pytorch_training.py reads: raw bytes in two files.
struct RawDataset {
  std::filesystem::path images;
  std::filesystem::path labels;
  kernels::Shape shape;
  int classes = 0;
  std::int64_t samples = 0;
  std::filesystem::path test_images{};  ///< of the test set; empty: PyTorch is not evaluated
  std::filesystem::path test_labels{};
  std::filesystem::path weights{};  ///< the first ones of a model (write_first_weights); empty: PyTorch's default

  /// Writes images and labels into `folder`.
  ///
  /// Errors    EnvironmentError with path and reason.
  static RawDataset write(const data::Dataset& dataset, const std::filesystem::path& folder);
};

/// Writes the weights with which our training of a model begins on a data set, and returns the file.
///
/// Errors    EnvironmentError with path and reason.
std::filesystem::path write_first_weights(const std::string& model, const data::Dataset& dataset,
                                          const std::filesystem::path& folder);

/// Options of the PyTorch training.
struct PyTorchStyle {
  bool channels_last = false;  ///< memory format of activations and weights
  bool dataloader = false;     ///< uses torch.utils.data.DataLoader; false: indexes the tensor of all images
};

/// The same training by PyTorch in eager mode, with DDP over gloo for several ranks, started and warm. One process per
/// rank runs pytorch_training.py and blocks on stdin between trainings, which start from the same weights each time.
/// Seconds are those of rank 0, processor seconds those of all ranks.
///
/// Errors    DeviceError if a Python process ends or does not answer, also of trainings; the reason is on stderr.
Contestant pytorch_contestant(const std::string& python, const TrainingLayout& layout, const TrainingTask& task,
                              const RawDataset& data, PyTorchStyle style = {});

/// The seconds of a short training in each memory format.
struct FormatTrial {
  double contiguous = 0;
  double channels_last = 0;

  bool channels_last_wins() const { return channels_last < contiguous; }
};

/// Finds the faster memory format: some steps in each format, in turns; medians.
FormatTrial try_memory_formats(const std::string& python, const TrainingLayout& layout, TrainingTask task,
                               const RawDataset& data);

}  // namespace gradring::train::bench
