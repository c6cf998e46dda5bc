// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nn/program/program.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/tensor_record.h"
#include "train/trainer/trainer_world.h"
#include "train/trainer/training_progress.h"

namespace gradring::train {

/// What a replica carries from one step to the next, in host memory, with PyTorch's names and orders, and independent
/// of the number of ranks.
struct ReplicaState {
  std::vector<TensorRecord> model;  ///< the weights, in f32
  std::vector<TensorRecord> state;  ///< the optimizer's: "exp_avg.conv_layers.0.weight", ...
  kernels::step_state::StepState step;
};

/// A training between two steps: the contents of a checkpoint.
struct TrainingState {
  TrainingProgress progress;
  ReplicaState replica;
  std::int64_t samples_of_step = 0;  ///< over all ranks
  kernels::Shape sample = {};        ///< of one sample
  JsonValue order;                   ///< order_of_samples(): an epoch can continue only in the same order
  std::string cpu_level = {};        ///< recorded_cpu_level() of the device
  JsonValue plans = {};              ///< plans_of(): informative only
};

/// Keys of Checkpoint::about.
inline constexpr const char* kSamplesOfStep = "samples_of_step";
inline constexpr const char* kPlans = "plans";

/// The implementation of each layer of a program: [{"layers": ["fc_layers.0"], "by": "gemm/direct"}, ...], the loss
/// last.
JsonValue plans_of(const nn::Program& program);

/// `settings` are the run's options as TOML, informative only; `score` ranks checkpoints.
Checkpoint to_checkpoint(TrainingState state, const std::string& settings, std::optional<double> score);

/// The inverse; the tensors are as in the file.
///
/// Errors    CheckpointError with `from` if a value is missing or invalid.
TrainingState from_checkpoint(Checkpoint checkpoint, const std::filesystem::path& from);

/// Hands checkpoints to rank 0's sink, which writes them in the background. Where ranks must wait for the writing, they
/// synchronize repeatedly: the timeout of collectives is meant for silent ranks, not for slow disks.
///
/// Threads   the trainer's. The world must outlive it.
class CheckpointSaver {
 public:
  /// stop_on_errors: two consecutive checkpoints that could not be saved end the run.
  CheckpointSaver(const TrainerWorld& world, std::chrono::milliseconds timeout, bool stop_on_errors)
      : world_(world), patience_(timeout / 4), stop_on_errors_(stop_on_errors) {}

  /// Collective. Returns when rank 0 is not writing.
  void wait();
  /// Reports errors of writing, on rank 0.
  ///
  /// Errors    SaveError.
  void report();
  /// Collective. Returns when the last checkpoint is durable.
  ///
  /// Errors    SaveError, on rank 0.
  void finish();

 private:
  const TrainerWorld& world_;
  std::chrono::milliseconds patience_;
  bool stop_on_errors_;
};

}  // namespace gradring::train
