// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "train/core/config/train_config.h"
#include "train/core/optim/optimizer.h"
#include "train/records/checkpoint/checkpoint.h"

namespace gradring::train {

/// The settings of the run that saved a checkpoint, without a check of their combinations.
///
/// Errors    CheckpointError with `from` if they are unknown or invalid.
TrainConfig saved_config(const Checkpoint& checkpoint, const std::filesystem::path& from);

/// The learning rates of a training.
struct RateSchedule {
  ScheduleSpec spec;
  double peak = 0;
  std::int64_t steps = 1;  ///< planned

  /// The rate of the step after `applied` ones. After the last planned step its rate stays, as on the device.
  ///
  /// Errors    as learning_rate_at.
  double at(std::int64_t applied) const;
};

/// The schedule of the run that saved a checkpoint. Versions that did not record its steps are taken to have used the
/// same data and batches in every start of the run.
RateSchedule saved_schedule(const Checkpoint& checkpoint, const TrainConfig& saved);

/// Where a training resumes.
struct RateChange {
  RateSchedule before, now;
  std::int64_t applied = 0;  ///< steps so far, skipped ones excluded
  std::int64_t steps = 0;    ///< with these
};

/// A remark with both rates, the reason, and how to keep the rate, if the next step has another rate than it would have
/// had before. Empty if not, if nothing was trained before, or if a schedule is invalid.
std::string describe_rate_change(const RateChange& change);

}  // namespace gradring::train
