// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "train/trainer/trainer_world.h"

namespace gradring::train {

/// Leaves checkpoints with rank 0's sink. Writing goes on beside training. Where ranks have to wait for it, they meet again and
/// again: the timeout of collectives is for ranks that are silent, not for disks that are slow.
///
/// Threads   that of the trainer. The world must outlive it.
class CheckpointSaver {
 public:
  /// stop_on_errors: two checkpoints in a row that could not be saved end the run.
  CheckpointSaver(const TrainerWorld& world, std::chrono::milliseconds timeout, bool stop_on_errors)
      : world_(world), patience_(timeout / 4), stop_on_errors_(stop_on_errors) {}

  /// Collective. Returns when rank 0 is writing nothing.
  void wait();
  /// Reports what went wrong, on rank 0; does nothing on others.
  ///
  /// Errors    SaveError.
  void report();
  /// Collective. Returns when the last checkpoint is safe.
  ///
  /// Errors    SaveError, on rank 0.
  void finish();

 private:
  const TrainerWorld& world_;
  std::chrono::milliseconds patience_;
  bool stop_on_errors_;
};

}  // namespace gradring::train
