// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/checkpoint_saver.h"

#include <span>

namespace gradring::train {

void CheckpointSaver::wait() {
  std::int64_t busy[1];
  do {
    busy[0] = world_.checkpoints && !world_.checkpoints->is_idle(patience_);
    world_.group.all_reduce_on_host(std::span(busy));
  } while (busy[0] > 0);
}

void CheckpointSaver::report() {
  if (!world_.checkpoints) return;
  for (const std::string& problem : world_.checkpoints->take_problems()) world_.metrics.remark(problem);
  if (stop_on_errors_ && world_.checkpoints->failures() >= 2)
    throw SaveError("two checkpoints in a row could not be saved: free space on the disk, or let the run go on without by "
                    "--on-save-error continue");
}

void CheckpointSaver::finish() {
  wait();
  if (!world_.checkpoints) return;
  world_.checkpoints->finish();
  report();
}

}  // namespace gradring::train
