// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gradring::train::bench {

/// CPU time of all reaped children of this process, in seconds.
double processor_seconds_of_children();

/// Wall-clock time of a program from PATH, whose output is dropped.
///
/// Errors    DeviceError if it cannot be started; EnvironmentError if it does not return 0.
std::chrono::duration<double> time_command(const std::vector<std::string>& words);

/// A training to time: the default model with Adam 1e-3 in FP32, one thread per rank.
struct TimedTrainingSpec {
  int ranks = 1;
  std::int64_t batch_size = 512;  ///< per rank
  std::string dataset = "digits";
  std::string data_dir{};
  std::int64_t epochs = 1;
  std::int64_t steps = 0;  ///< at most; 0: all steps of the epochs
};

struct TrainingTime {
  double seconds = 0;  ///< without start-up and evaluation
  /// CPU time of all ranks, which other load on the machine affects less. For train_ourselves, includes start-up and
  /// evaluation.
  double processor_seconds = 0;
  double loss = 0;  ///< mean over the last epoch, to compare the contenders
  // Of PyTorch only:
  std::optional<double> accuracy{};        ///< on the test set, if there is one
  std::optional<double> resident_bytes{};  ///< peak resident set size of all ranks so far
};

/// One side of a comparison.
struct Contender {
  std::string name;
  std::function<TrainingTime()> train;
};

/// Interleaves the contenders (a, b, a, b, ...), so that other load affects all equally. Calls `heard` with (round,
/// contender, time) after each training.
///
/// Returns   rounds x contenders.
std::vector<std::vector<TrainingTime>> train_in_turns(const std::vector<Contender>& contenders, int rounds,
                                                      const std::function<void(int, std::size_t, TrainingTime)>& heard);

/// Runs this program as `launch ... train ...` with its run directory in `folder`. The time is that of summary.json and
/// includes the first step.
///
/// Threads   the main thread of a process that has no other (launch/launcher.h).
/// Errors    EnvironmentError if the training fails; its message is on stderr.
TrainingTime train_ourselves(const TimedTrainingSpec& spec, const std::filesystem::path& folder);

}  // namespace gradring::train::bench
