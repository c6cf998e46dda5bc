// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernels/runtime/error.h"
#include "train/checkpoint/checkpoint.h"

namespace gradring::train {

/// The last checkpoint of a run could not be saved, by a full disk, say: its last steps are lost. Exit code 1.
class LastCheckpointError : public Error {
 public:
  using Error::Error;
};

/// Where a trainer leaves its checkpoints.
///
/// Threads   that of the trainer.
class CheckpointSink {
 public:
  virtual ~CheckpointSink() = default;
  /// Takes a checkpoint over. What goes wrong with it shows in take_problems(), or in finish().
  virtual void save(Checkpoint checkpoint) = 0;
  /// What went wrong since the last call, one line each; training goes on.
  virtual std::vector<std::string> take_problems() = 0;
  /// Returns when nothing is being written any more; what went wrong shows in take_problems().
  virtual void settle() = 0;
  /// Returns when the last checkpoint is safe.
  ///
  /// Errors    LastCheckpointError if it is not.
  virtual void finish() = 0;
};

}  // namespace gradring::train
