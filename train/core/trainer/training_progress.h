// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "kernels/ops/step_state/step_state.h"

namespace gradring::train {

/// The progress of a training between two steps.
struct TrainingProgress {
  std::int64_t steps = 0;           ///< completed, including skipped ones
  std::int64_t epoch = 0;           ///< of the next step
  std::int64_t position = 0;        ///< in that epoch's order of all ranks together, of the next step's first sample
  std::int64_t samples = 0;         ///< seen so far, by all ranks
  double epoch_loss_sum = 0;        ///< over the samples of the newest epoch with a finite loss
  std::int64_t epoch_samples = 0;   ///< number of those samples
  double seconds = 0;               ///< spent on steps
  std::int64_t imported_steps = 0;  ///< of the optimizer, before this training (--optimizer-state)
  std::optional<double> best_accuracy{};  ///< of evaluations at the ends of epochs, which select checkpoints
  std::int64_t epochs_since_best = 0;

  /// After an epoch, with what its evaluation found.
  void epoch_evaluated(double accuracy) {
    const bool improved = !best_accuracy || accuracy > *best_accuracy;
    if (improved) best_accuracy = accuracy;
    epochs_since_best = improved ? 0 : epochs_since_best + 1;
  }

  bool operator==(const TrainingProgress&) const = default;
};

nlohmann::ordered_json to_json(const TrainingProgress& progress);
nlohmann::ordered_json to_json(const kernels::step_state::StepState& state);

inline constexpr std::int64_t kUnknownSteps = -1;

/// The inverse. Without "imported_steps", as earlier versions wrote it, that is kUnknownSteps. "best_accuracy" may be
/// missing, too.
///
/// Errors    CheckpointError with `path` for a missing or invalid value.
TrainingProgress progress_in(const nlohmann::ordered_json& json, const std::filesystem::path& path);
kernels::step_state::StepState step_state_in(const nlohmann::ordered_json& json, const std::filesystem::path& path);

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

/// Why a training has no step left.
struct TrainingEnd {
  bool made_all_steps = true;  ///< of --steps or --epochs
  bool stops_early = false;    ///< --early-stop
};

}  // namespace gradring::train
