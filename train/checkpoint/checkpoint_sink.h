// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "kernels/runtime/error.h"
#include "train/checkpoint/checkpoint.h"

namespace gradring::train {

/// Checkpoints cannot be saved, for example because the disk is full. Exit code 3.
class SaveError : public Error {
 public:
  using Error::Error;
};

/// Where a trainer leaves its checkpoints.
///
/// Threads   that of the trainer.
class CheckpointSink {
 public:
  virtual ~CheckpointSink() = default;
  /// Takes a checkpoint over; waits until the one before is written. What goes wrong shows in take_problems(), or in finish().
  virtual void save(Checkpoint checkpoint) = 0;
  /// Whether nothing is being written; waits for that as long as `patience`.
  virtual bool is_idle(std::chrono::milliseconds patience) = 0;
  /// What went wrong since the last call, one line each.
  virtual std::vector<std::string> take_problems() = 0;
  /// How many checkpoints in a row, the newest that was written included, could not be saved.
  virtual int failures() const = 0;
  /// Returns when the last checkpoint is safe.
  ///
  /// Errors    SaveError if it is not.
  virtual void finish() = 0;
};

}  // namespace gradring::train
