// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

#include "kernels/runtime/deadline.h"

namespace gradring::train::bench {

/// Durations from the crash of a rank.
struct RestartTime {
  double back = 0;        ///< seconds until all ranks have connected and loaded the checkpoint
  double first_step = 0;  ///< seconds until the first step after that
};

/// A training on the built-in digits under a launcher that restarts it whenever a rank is killed. Observed through the files
/// of its run directory, every two milliseconds.
///
/// Errors    EnvironmentError if the training ends, or makes no progress for a minute.
class RestartedTraining {
 public:
  /// Starts it with its run directory in `folder`. `seed` draws the victims and times of crash().
  RestartedTraining(int ranks, const std::filesystem::path& folder, std::uint64_t seed);
  /// Kills the launcher.
  ~RestartedTraining();
  RestartedTraining(const RestartedTraining&) = delete;
  RestartedTraining& operator=(const RestartedTraining&) = delete;

  /// Waits for some steps, kills a rank, and waits until the training continues.
  RestartTime crash();

 private:
  template <class Condition>
  void await(const char* what, Condition condition);
  std::string log_of(int rank) const;
  std::int64_t steps() const;
  pid_t process_of(int rank) const;

  int ranks_;
  std::filesystem::path run_;
  std::mt19937_64 random_;
  pid_t launcher_ = -1;
  std::int64_t from_ = 0;  // the step after which the latest attempt began
};

}  // namespace gradring::train::bench
