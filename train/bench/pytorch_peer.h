// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"
#include "kernels/base/child_process.h"
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
  std::filesystem::path test_images{};  ///< of the test set; empty: PyTorch is not evaluated
  std::filesystem::path test_labels{};

  /// Writes them into `folder`.
  ///
  /// Errors    EnvironmentError with path and reason.
  static RawDataset write(const data::Dataset& dataset, const std::filesystem::path& folder);
};

/// Options of the PyTorch training.
struct PyTorchStyle {
  bool channels_last = false;  ///< memory format of activations and weights
  bool dataloader = false;     ///< uses torch.utils.data.DataLoader; false: indexes the tensor of all images
};

/// The same training by PyTorch in eager mode, with DDP over gloo for several ranks. One process per rank runs
/// pytorch_training.py and blocks on stdin between trainings.
///
/// Errors    DeviceError if a Python process ends or does not answer; the reason is on stderr.
class PyTorchPeer {
 public:
  /// Returns when all have loaded the data and warmed up.
  PyTorchPeer(const std::string& python, const TrainingLayout& layout, const TrainingTask& task, const RawDataset& data,
              PyTorchStyle style);
  ~PyTorchPeer();

  /// Starts from the same weights each time. Seconds of rank 0, processor seconds of all ranks, mean loss.
  Measurement train();

  /// What PyTorch multiplies matrices by: the file of its BLAS library, or the name of what it contains ("MKL 2024.2").
  const std::string& blas() const { return blas_; }

 private:
  std::string blas_;
  std::vector<std::unique_ptr<ChildProcess>> ranks_;
};

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
