// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "nn/program/program.h"
#include "train/checkpoint/checkpoint.h"
#include "train/trainer/replica_state.h"
#include "train/trainer/training_progress.h"

namespace gradring::train {

/// A training between two steps: what a checkpoint of it holds.
struct TrainingState {
  TrainingProgress progress;
  ReplicaState replica;
  std::int64_t samples_of_step = 0;   ///< of all ranks
  kernels::Shape sample = {};         ///< of one sample
  nlohmann::ordered_json order;       ///< in what order samples come: an epoch that was begun goes on only in the same
  std::string cpu_level = {};         ///< recorded_cpu_level() of the device
  nlohmann::ordered_json plans = {};  ///< plans_of(): for people, nothing depends on it
};

/// What Checkpoint::about calls samples_of_step, and plans.
inline constexpr const char* kSamplesOfStep = "samples_of_step";
inline constexpr const char* kPlans = "plans";

/// What computes the layers of a program: [{"layers": ["fc_layers.0"], "by": "gemm/direct"}, ...], the loss last.
nlohmann::ordered_json plans_of(const nn::Program& program);

/// `settings` are the run's options as TOML, for people; `score` says which checkpoints are the best.
Checkpoint to_checkpoint(TrainingState state, const std::string& settings, std::optional<double> score);

/// The inverse; the tensors are as the file has them.
///
/// Errors    CheckpointError with `from` if something is missing or no such number.
TrainingState from_checkpoint(Checkpoint checkpoint, const std::filesystem::path& from);

}  // namespace gradring::train
