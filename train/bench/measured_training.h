// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/core/config/train_config.h"

namespace gradring::train::bench {

/// How a training is laid out over processes, devices and passes. Equal global batches train alike in every layout.
struct TrainingLayout {
  std::string name;
  std::string series{};  ///< of rows that scale from the same first one
  int ranks = 1;
  int devices = 1;  ///< of --data-parallel
  int threads = 1;  ///< of each rank or device
  std::string precision = "fp32";
  int zero = 0;
  std::int64_t passes = 1;          ///< micro-batches of a rank in a step
  std::int64_t global_batch = 256;  ///< divisible by ranks * passes

  int cores() const { return ranks * devices * threads; }
};

/// What is trained, with the default optimizer.
struct TrainingTask {
  std::string model = "convnet";  ///< as --model names it
  TrainConfig data{};             ///< its options of a data set
  std::int64_t epochs = 1;
  std::int64_t steps = 0;  ///< at most; 0: all steps of the epochs
  std::string device = "cpu";
};

/// One training. Seconds are those of training, without start-up and evaluation.
struct Measurement {
  double seconds = 0;
  double seconds_per_epoch = 0;
  double samples_per_second = 0;
  double processor_seconds = 0;           ///< of all processes; of the whole command, unless an overhead is subtracted
  std::optional<double> communication{};  ///< share of `seconds` in which ranks, or the first device, wait for others
  std::optional<double> accuracy{};       ///< on the test set, 0..1
  double loss = 0;                        ///< mean over the last epoch
  std::optional<double> planned_bytes{};  ///< of the device of rank 0, or the first device
  std::optional<double> peak_bytes{};
  std::optional<double> further_bytes{};   ///< peak of the other devices of --data-parallel together
  std::optional<double> resident_bytes{};  ///< peak resident set size of all processes; counts shared pages in each
  std::vector<double> losses{};            ///< of each step
};

/// A layout, and its trainings.
struct TrainingRow {
  TrainingLayout layout;
  std::string framework = "gradring";
  std::vector<Measurement> rounds;

  /// The median over the rounds of those that have the number.
  std::optional<double> median(double Measurement::*number) const;
  std::optional<double> median(std::optional<double> Measurement::*number) const;
};

/// A row to measure.
struct Contestant {
  TrainingLayout layout;
  std::string framework = "gradring";
  std::function<Measurement()> train;
  /// What PyTorch multiplies matrices by: the file of its BLAS library, or the name of what it contains ("MKL 2024.2").
  std::string blas{};
};

/// Our training in this layout. It trains a single step first, which warms the machine up; the CPU seconds of that
/// command, with start-up and evaluation, are subtracted from those of each later one, whose other steps remain.
///
/// Errors    as measure_training.
Contestant our_contestant(const TrainingLayout& layout, const TrainingTask& task, const std::filesystem::path& folder);

/// Trains in turns. `heard` gets each training; it says on stderr what it was unless another one is given.
using HeardTraining = std::function<void(int round, const Contestant& contestant, const Measurement& measured)>;
std::vector<TrainingRow> measure_rounds(const std::vector<Contestant>& contestants, int rounds,
                                        HeardTraining heard = {});

/// Runs this program as `train ...` with its run directory in `folder`, and reads its summary and metrics.
///
/// Errors    DeviceError if it cannot be started; EnvironmentError if it fails; its message is on stderr.
Measurement measure_training(const TrainingLayout& layout, const TrainingTask& task,
                             const std::filesystem::path& folder);

/// The words of that command, without the program and --run-dir.
std::vector<std::string> command_of(const TrainingLayout& layout, const TrainingTask& task);

/// Sum of the peak resident set sizes of a process and all its descendants that run now, in bytes.
std::size_t resident_bytes_of(int process);

}  // namespace gradring::train::bench
