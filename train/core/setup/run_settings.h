// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "train/core/config/train_config.h"
#include "train/core/optim/optimizer.h"
#include "train/core/setup/compute.h"
#include "train/launch/workers/worker_environment.h"
#include "train/records/checkpoint/checkpoint.h"

namespace gradring::train {

/// The config with `auto` and 0 resolved for this run, for config.resolved.toml: sampler, shard-size, global-batch (and
/// accumulate, then 1), precision, device, backend, resident, threads, comm, allreduce, on-nan. A run with these
/// options and as many ranks on the same kind of machine computes the same.
///
/// `auto` remains where no single value says the same: conv and gemm (chosen per layer; meta.json lists them),
/// checkpoint-activations, progress, and comm of a single GPU. 0 remains where it means "off".
///
/// Errors    as step_sizes.
TrainConfig resolved_config(const TrainConfig& config, const Compute& compute, const WorkerEnvironment& environment);

/// The settings of the run that saved a checkpoint, as TOML; nullopt if unknown.
std::optional<std::string> saved_settings(const Checkpoint& checkpoint);

/// One of these settings with a text or a whole number as its value ("dataset", "image-size"); empty if unknown.
std::string saved_setting(const Checkpoint& checkpoint, std::string_view option);

/// The model of the run that saved a checkpoint; an empty name if it is unknown.
nn::ModelText saved_model(const Checkpoint& checkpoint);

/// Checks that the run that saved a checkpoint trained the model of `config`, both as their texts say, for samples of
/// `data`: parameters that --group freezes are compared by check_same_groups. A file may have changed, or be another, if
/// its layers are equal.
///
/// Errors    CheckpointError with `from`, which names the first layer that differs.
void check_same_model(const Checkpoint& checkpoint, const std::filesystem::path& from, const TrainConfig& config,
                      const data::DatasetFacts& data);

/// Checks that the run that saved a checkpoint had the parameter groups of this one (--group).
///
/// Errors    CheckpointError with `from`, which shows both.
void check_same_groups(const Checkpoint& checkpoint, const std::filesystem::path& from, const TrainConfig& config);

/// A remark if a step has another number of samples than in the run that saved the checkpoint, often because the number
/// of ranks has changed. Empty if the numbers are equal or unknown.
///
/// Errors    as step_sizes.
std::string step_change(const Checkpoint& checkpoint, const TrainConfig& config, int ranks);

/// The settings of the run that saved a checkpoint, without a check of their combinations.
///
/// Errors    CheckpointError with `from` if they are unknown or invalid.
TrainConfig saved_config(const Checkpoint& checkpoint, const std::filesystem::path& from);

/// The learning rates of a training.
struct RateSchedule {
  ScheduleSpec spec;
  double peak = 0;
  std::int64_t steps = 1;     ///< planned
  std::int64_t of_epoch = 1;  ///< steps

  /// The rate of the step after `applied` ones. After the last planned step its rate stays, as on the device.
  ///
  /// Errors    as learning_rate_at.
  double at(std::int64_t applied) const;
  double at(const ParameterGroup& group, std::int64_t applied) const;
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

/// A remark with both rates, the reason, and how to go on, if the next step has another rate than it would have had
/// before, or if more steps than before would have a rate too small to train on. Empty if not, if nothing was trained
/// before, or if a schedule is invalid.
std::string describe_rate_change(const RateChange& change);

}  // namespace gradring::train
