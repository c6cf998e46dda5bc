// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

#include "kernels/runtime/deadline.h"

namespace gradring::train::bench {

/// From the crash of a rank until:
struct RestartTime {
  double back = 0;        ///< seconds, all ranks have met again and have what the checkpoint says
  double first_step = 0;  ///< seconds, the first step behind that is made
};

/// A training on the embedded digits under a launcher that starts it again whenever a rank is killed. It is watched through
/// the files of its run directory, to about two milliseconds.
///
/// Errors    EnvironmentError if the training ends, or nothing comes of it for a minute.
class RestartedTraining {
 public:
  /// Starts it; its run directory lies beneath `folder`. `seed`: of whom and when crash() kills.
  RestartedTraining(int ranks, const std::filesystem::path& folder, std::uint64_t seed);
  /// Kills it.
  ~RestartedTraining();
  RestartedTraining(const RestartedTraining&) = delete;
  RestartedTraining& operator=(const RestartedTraining&) = delete;

  /// Lets it come some steps further, kills one of its ranks, and waits until it goes on.
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
  std::int64_t from_ = 0;  // the step behind which the newest attempt began
};

}  // namespace gradring::train::bench
