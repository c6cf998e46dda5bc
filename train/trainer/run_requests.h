// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::train {

/// What somebody asks of a training that runs.
enum class RunRequest : std::uint8_t {
  none,
  save,  ///< a checkpoint, and go on
  stop,  ///< a checkpoint, and leave
};

/// What a rank is doing that is about to begin a step.
inline constexpr const char* kTraining = "training";

/// Where a rank is.
struct RunPlace {
  const char* doing = "";  ///< kTraining, "evaluating", "saving"
  std::int64_t steps = 0;  ///< behind it
  std::int64_t epoch = 0;
  std::int64_t begun = 0;  ///< steps; on a GPU ahead of those that are behind it
};

/// Who asks. The ranks agree on what to do at the next boundary between steps.
///
/// Threads   that of the trainer.
class RunRequests {
 public:
  virtual ~RunRequests() = default;
  /// What this rank was asked since the last call; the strongest, if there was more.
  virtual RunRequest take() = 0;
  /// For who wants to know.
  virtual void at(const RunPlace& place) = 0;
};

/// A training ended early, behind a checkpoint, because somebody asked for it. Exit code 143.
class Preempted : public Error {
 public:
  using Error::Error;
};

}  // namespace gradring::train
