// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "kernels/ops/step_state/step_state.h"
#include "train/core/trainer/training_progress.h"

namespace gradring::train {

/// The counters of a checkpoint.
struct CheckpointCounts {
  std::int64_t step = 0;  ///< that it is of
  const TrainingProgress& progress;
  const kernels::step_state::StepState& state;
  std::int64_t samples_of_step = 0;   ///< 0: unknown
  std::int64_t samples_of_epoch = 0;  ///< in the training set; 0: unknown
};

/// Checks that one training can have all of them, whose data and whose samples of a step may have changed at a resume.
///
/// Errors    CheckpointError with `file` (meta.json), the counter and its value, and what was expected.
void check_consistent(const CheckpointCounts& counts, const std::filesystem::path& file);

}  // namespace gradring::train
