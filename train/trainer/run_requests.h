// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::train {

/// A request to a running training.
enum class RunRequest : std::uint8_t {
  none,
  save,  ///< save a checkpoint and continue
  stop,  ///< save a checkpoint and exit
};

/// RunPlace::doing of a rank that begins a step.
inline constexpr const char* kTraining = "training";

/// The position of a rank.
struct RunPlace {
  const char* doing = "";  ///< kTraining, "evaluating", "saving"
  std::int64_t steps = 0;  ///< completed
  std::int64_t epoch = 0;
};

/// The source of requests. The ranks agree on them at the next boundary between steps.
///
/// Threads   the trainer's.
class RunRequests {
 public:
  virtual ~RunRequests() = default;
  /// The strongest request to this rank since the last call.
  virtual RunRequest take() = 0;
  /// Reports the position.
  virtual void at(const RunPlace& place) = 0;
};

/// A training ended early, after saving a checkpoint, on request. Exit code 143.
class Preempted : public Error {
 public:
  using Error::Error;
};

}  // namespace gradring::train
