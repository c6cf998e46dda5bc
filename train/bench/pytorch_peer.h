// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"
#include "kernels/bench/child_process.h"
#include "train/bench/timed_training.h"

namespace gradring::train::bench {

/// A data set as PyTorch's script takes it: raw bytes in two files.
struct RawDataset {
  std::filesystem::path images;
  std::filesystem::path labels;
  kernels::Shape shape;
  int classes = 0;

  /// Writes them into `folder`.
  ///
  /// Errors    EnvironmentError with path and reason.
  static RawDataset write(const data::Dataset& dataset, const std::filesystem::path& folder);
};

/// How PyTorch is used, where a person has a choice.
struct PyTorchStyle {
  bool channels_last = false;  ///< memory format of activations and weights
  bool dataloader = false;     ///< torch.utils.data.DataLoader, rather than indexing the tensor of all images
};

/// The same training by PyTorch in eager mode, DDP over gloo where there are several ranks: a process a rank
/// (pytorch_training.py), which waits on its stdin, without using the processor, until it is asked to train again.
///
/// Errors    DeviceError if a Python ends or gives no answer; what went wrong it says on stderr.
class PyTorchPeer {
 public:
  /// Returns when all have loaded the data and warmed up.
  PyTorchPeer(const std::string& python, const TimedTrainingSpec& spec, const RawDataset& data, PyTorchStyle style);
  ~PyTorchPeer();

  /// From the same first weights each time. The seconds are rank 0's, the processors' seconds those of all ranks, the loss is their mean.
  TrainingTime train();

  /// The file of the library that multiplies its matrices; empty where torch brought one within itself.
  const std::string& blas() const { return blas_; }

 private:
  std::string blas_;
  std::vector<std::unique_ptr<kernels::bench::ChildProcess>> ranks_;
};

/// The seconds of a short training in each memory format.
struct FormatTrial {
  double contiguous = 0;
  double channels_last = 0;

  bool channels_last_wins() const { return channels_last < contiguous; }
};

/// So that PyTorch is measured at its best: some steps of `spec` in one format and the other, in turns; medians.
FormatTrial try_memory_formats(const std::string& python, TimedTrainingSpec spec, const RawDataset& data);

}  // namespace gradring::train::bench
