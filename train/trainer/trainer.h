// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "data/samplers/step_sampler.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/error.h"
#include "nn/backend/backend.h"
#include "nn/program/program.h"
#include "train/checkpoint/checkpoint_sink.h"
#include "train/config/train_config.h"
#include "train/feed/batch_feed.h"
#include "train/memory/memory_plan.h"
#include "train/report/metrics_sink.h"
#include "train/report/sha256.h"
#include "train/report/summary.h"
#include "train/trainer/checkpoint_saver.h"
#include "train/trainer/evaluate.h"
#include "train/trainer/on_nan.h"
#include "train/trainer/replica.h"
#include "train/trainer/rollback.h"
#include "train/trainer/step_sizes.h"
#include "train/trainer/trainer_world.h"
#include "train/trainer/training_progress.h"

namespace gradring::train {

/// Weights that were made elsewhere, in any spelling of their names (ParameterNames).
struct FirstWeights {
  std::vector<TensorRecord> tensors;  ///< empty on ranks other than 0
  std::filesystem::path from;
};

/// One rank's side of data-parallel training. Every rank runs the same trainer on its share of the samples; the group keeps
/// the replicas equal.
///
///   for each epoch:  for each window of batches:  TrainStep    (forward, loss, backward; all-reduce, update)
///                    evaluate                                  (each test sample once, over all ranks)
///
/// On a GPU the host runs ahead of the steps: what came of them is reported, and acted upon, as it arrives.
///
/// Threads   one.
/// Errors    Preempted, DivergedError, ReplicaError, comm::CommError, DeviceError, EnvironmentError (from the metrics).
class Trainer {
 public:
  /// Blocks until all ranks have come and taken over rank 0's weights.
  Trainer(const TrainConfig& config, const TrainerWorld& world);
  /// After an error, waits for steps that are still enqueued: they use what goes here.
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Goes on where a checkpoint was made, as if nothing had been: before run(). What rank 0 has counts for all. Blocks
  /// until all ranks have come.
  ///
  /// Errors    CheckpointError, on rank 0, if it is of another model or optimizer; UsageError if it stands within an epoch
  ///           that these options cannot go on with.
  void resume(ResumePoint point);
  /// The same with nothing but weights, say of another program: the training begins with them.
  void begin_with(FirstWeights weights);
  const TrainingProgress& progress() const { return progress_; }
  /// Whether no step is left.
  bool is_over() const { return enough_steps() || (config_.epochs > 0 && progress_.epoch >= config_.epochs); }
  /// Names where checkpoints go, and who reads the newest back (TrainerWorld), after the run directory is made: before run().
  void save_to(CheckpointSink& checkpoints, NewestCheckpoint newest) {
    world_.checkpoints = &checkpoints;
    world_.newest_checkpoint = std::move(newest);
  }
  /// What is trained, for who looks on between steps.
  Replica& replica() { return replica_; }

  /// Trains and evaluates to the end. The same summary on every rank. Checkpoints are saved at the end of each epoch and of
  /// the run, and as often as the options say.
  ///
  /// Errors    SaveError if the last checkpoint could not be saved, or, with --on-save-error stop, two in a row.
  Summary run();

 private:
  using Clock = std::chrono::steady_clock;
  /// A step that was enqueued and not reported yet.
  struct Pending {
    std::int64_t epoch = 0;
    std::int64_t step_of_epoch = 0;
    std::int64_t samples = 0;
    std::chrono::nanoseconds data_wait{0};
  };

  /// Returns   whether it came to the epoch's end, or that of the run; if not, the training went back.
  bool run_epoch();
  void enqueue_step(std::int64_t epoch, std::int64_t step);
  Evaluation evaluate_model();
  Evaluation evaluate_with(const nn::Weights& weights);
  Summary summary_of(const Evaluation& result, const Sha256& weights) const;
  void save(std::optional<double> score);
  /// Does what ranks were asked, if it is time to agree on that. Returns whether the training went back before.
  bool answer_requests();
  RunRequest agree_on_request();
  void tell(const char* doing);
  double learning_rate_of(const StepResult& result) const;
  bool enough_steps() const { return config_.steps > 0 && enqueued_ >= config_.steps; }
  /// Takes the results that are there, and waits for those that must be: all of them, or room for one more.
  void take_results(bool all);
  void report(const StepResult& result);
  void report(const Evaluation& result);
  void check_weights();
  /// Returns   whether the training went back, as it must at the latest here, where results up to the last were taken.
  bool go_back_if_asked();
  Sha256 hash_of_weights();
  MemoryTable planned_memory() const;

  TrainConfig config_;
  TrainerWorld world_;
  StepSizes sizes_;
  std::unique_ptr<data::StepSampler> sampler_;
  Replica replica_;
  nn::Program eval_program_;
  std::unique_ptr<BatchFeed> feed_;
  StepJudge judge_;
  Rollback rollback_;
  CheckpointSaver saver_;

  std::optional<Evaluation> averaged_;  // of the averaged weights, if there are any, with the newest evaluation
  std::int64_t enqueued_ = 0;           // steps
  std::deque<Pending> pending_;         // of these, the oldest first
  TrainingProgress progress_;           // as reported
  std::int64_t epoch_ = 0;              // that is running, or ran last
  std::int64_t saved_ = -1;             // the step of the newest checkpoint
  Clock::time_point last_report_;
};

}  // namespace gradring::train
