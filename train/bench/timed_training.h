// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace gradring::train::bench {

/// A training to be timed: the seed model by Adam 1e-3 in FP32, one thread a rank. Whole epochs, or the first steps of one.
struct TimedTrainingSpec {
  int ranks = 1;
  std::int64_t batch_size = 512;  ///< per rank
  std::string dataset = "digits";
  std::string data_dir{};
  std::int64_t epochs = 1;
  std::int64_t steps = 0;  ///< stop after so many; 0: the epochs decide
};

struct TrainingTime {
  double seconds = 0;  ///< training only: no start-up, no evaluation
  /// Of the processors, all ranks together: what a machine that is busy with something else changes less. Of
  /// train_ourselves: start-up and evaluation included.
  double processor_seconds = 0;
  double loss = 0;  ///< mean over the last epoch: that the contenders did the same
};

/// Who trains, and how.
struct Contender {
  std::string name;
  std::function<TrainingTime()> train;
};

/// Calls the contenders in turns, so that whatever else the machine does hits all alike: a, b, a, b, ...; `heard` learns of
/// each end as (round, contender).
///
/// Returns   rounds x contenders.
std::vector<std::vector<TrainingTime>> train_in_turns(const std::vector<Contender>& contenders, int rounds,
                                                      const std::function<void(int, std::size_t, TrainingTime)>& heard);

/// gradring as a person runs it: this program as `launch ... train ...`, its run directory beneath `folder`, its clock the one
/// in summary.json, first step included.
///
/// Threads   the main thread of a process that has no other (launch/launcher.h).
/// Errors    EnvironmentError if the training fails; it has said why.
TrainingTime train_ourselves(const TimedTrainingSpec& spec, const std::filesystem::path& folder);

}  // namespace gradring::train::bench
