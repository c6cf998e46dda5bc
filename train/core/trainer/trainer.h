// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "data/loader/sampler.h"
#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "nn/program/program.h"
#include "train/core/config/train_config.h"
#include "train/core/input_pipeline/batch_loader.h"
#include "train/core/trainer/evaluator.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/nan_policy.h"
#include "train/core/trainer/replica.h"
#include "train/core/trainer/trainer_world.h"
#include "train/core/trainer/training_state.h"
#include "train/records/checkpoint/checkpoint_writer.h"
#include "train/records/metrics/metrics.h"
#include "train/records/metrics/summary.h"

namespace gradring::train {

/// One rank's times since they were last collected. A sum over the ranks collects them, since each rank adds its own at
/// a place of its own, so they can travel with other sums.
///
/// Threads   the trainer's.
class RankTimes {
 public:
  void add(const StepRecord& record);
  /// Appends this rank's times, and zeros for the others. `memory_bytes` is its peak.
  void append_to(std::vector<std::int64_t>& sums, const comm::ProcessGroup& group, std::size_t memory_bytes) const;
  /// The record after step `step`, from what append_to appended on all ranks; starts anew.
  RanksRecord take(std::span<const std::int64_t> sums, std::int64_t step);

 private:
  std::int64_t steps_ = 0;
  std::chrono::nanoseconds total_{0};
  std::chrono::nanoseconds data_wait_{0};
  std::chrono::nanoseconds exposed_communication_{0};
};

/// One rank's side of data-parallel training. Every rank runs the same trainer on its share of the samples; the group
/// keeps the replicas equal.
///
///   for each epoch:  for each window of batches:  TrainStep    (forward, loss, backward; all-reduce, update)
///                    evaluate                                  (each validation or test sample once, over all ranks)
///
/// On a GPU the host runs ahead of the steps: results are reported, and acted upon, as they arrive.
///
/// Threads   one.
/// Errors    Preempted, DivergedError, ReplicaError, comm::CommError, DeviceError, EnvironmentError (from the metrics).
class Trainer {
 public:
  /// Collective: copies rank 0's weights to all ranks.
  Trainer(const TrainConfig& config, const TrainerWorld& world);
  /// After an error, waits for enqueued steps, which use the members.
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Resumes from a checkpoint, as if the run had not been interrupted; before run(). Rank 0's checkpoint counts for
  /// all. Collective.
  ///
  /// Returns   remarks where its data or its rounding was another; an empty one where not.
  /// Errors    CheckpointError, on rank 0, if it belongs to another model or optimizer; on all, as check_samples;
  ///           UsageError if it is within an epoch that these options cannot continue.
  std::vector<std::string> resume(ResumePoint point);
  /// Computes the initial weights that follow from the training images (nn::Init::whitening); in a training that begins
  /// without checkpoint and weights. Collective.
  void begin_new();
  /// Begins a training with these weights, those that --reinit names as they were initialized, and with the state of
  /// their optimizer if rank 0 has it. Collective.
  ///
  /// Returns   remarks on their names.
  /// Errors    CheckpointError, on rank 0, if they belong to another model or optimizer; DivergedError if they are not
  ///           finite.
  std::vector<std::string> begin_with(FirstWeights weights);
  const TrainingProgress& progress() const { return progress_; }
  const data::DatasetFacts& facts() const { return facts_; }
  /// Steps of the whole run, unless it ends early: what a schedule spans.
  std::int64_t planned_steps() const { return total_steps(config_, *sampler_); }
  /// Whether no step is left.
  bool is_over() const { return end().made_all_steps || stops_early(); }
  TrainingEnd end() const {
    return {.made_all_steps = enough_steps() || (config_.epochs > 0 && progress_.epoch >= config_.epochs),
            .stops_early = stops_early()};
  }
  /// Sets where checkpoints are saved and read (TrainerWorld), once the run directory exists; before run().
  void save_to(CheckpointSink& checkpoints, NewestCheckpoint newest) {
    world_.checkpoints = &checkpoints;
    world_.newest_checkpoint = std::move(newest);
  }
  /// Fills in what the trainer knows: model, precision, sizes, memory, and where it resumes.
  void describe(RunHeader& header) const;
  /// The trained replica, for inspection between steps.
  Replica& replica() { return replica_; }

  /// Trains and evaluates to the end. The same summary on every rank. Checkpoints are saved at the end of each epoch
  /// and of the run, and at the interval of the options. With a validation set, that is evaluated instead of the test
  /// set, which is evaluated once, after the last step.
  ///
  /// Errors    SaveError if the last checkpoint could not be saved, or, with --on-save-error stop, two in a row.
  Summary run();
  /// To be called after run().
  ///
  /// Errors    DivergedError if the training has steps, and every one of them was skipped.
  void check_updates();

 private:
  using Clock = std::chrono::steady_clock;
  /// A step that is enqueued and not reported yet.
  struct Pending {
    std::int64_t epoch = 0;
    std::int64_t step_of_epoch = 0;
    std::int64_t samples = 0;
    std::chrono::nanoseconds data_wait{0};
  };

  /// Returns   whether it reached the end of the epoch or run; false after a rollback.
  bool run_epoch();
  void enqueue_step(std::int64_t epoch, std::int64_t step);
  std::optional<BatchLoader::Next> next_batch();
  ModelEvaluation evaluate();
  ModelEvaluation evaluate_at_end(const ModelEvaluation& selected);
  void save(std::optional<double> score);
  /// Agrees on requests to save or stop, and executes them. Returns whether the training was rolled back before.
  bool handle_requests(bool ends_epoch);
  RunRequest agree_on_request(bool ends_epoch);
  void report_position(const char* doing);
  double learning_rate_of(const StepResult& result) const;
  std::int64_t steps_of_epoch(std::int64_t step_of_epoch) const;
  bool stops_early() const {
    return config_.early_stop > 0 && progress_.position == 0 && progress_.epochs_since_best >= config_.early_stop;
  }
  bool enough_steps() const { return config_.steps > 0 && enqueued_ >= config_.steps; }
  /// Takes available results, and waits for those that must be taken: all, or enough for one more step.
  void take_results(bool all);
  void report(const StepResult& result);
  void evaluate_within_epoch();
  void report(const ModelEvaluation& found, bool ends_epoch);
  void check_weights();
  void trace_next_step();
  /// Takes all results, and rolls back if requested. Returns whether it did.
  bool roll_back_if_requested();
  Sha256 hash_of_weights();
  /// On what the bits of a reproducible training depend; else empty.
  JsonValue computation() const;
  /// Reports weights and gradients to rank 0's sinks, if one shows them. Every result of a step must have been taken.
  void report_parameters();
  /// Weights were copied to the host. With ZeRO 1 they come through the memory of the gradients.
  void weights_gathered() {
    if (config_.zero == 1) gradient_scale_.reset();
  }
  MemoryTable planned_memory() const;
  /// `selected`: the last evaluation that selects checkpoints; `at_end`: on the test set.
  Summary summary_of(const ModelEvaluation& selected, const ModelEvaluation& at_end, const Sha256& weights) const;

  TrainConfig config_;
  TrainerWorld world_;
  kernels::TraceTrack* trace_;  // of this thread; null: none
  StepSizes sizes_;
  data::DatasetFacts facts_;  // with the mean and std that normalize samples
  std::unique_ptr<data::StepSampler> sampler_;
  Replica replica_;
  std::unique_ptr<BatchLoader> batches_;
  Evaluator evaluator_;
  NanPolicy nan_policy_;
  Rollback rollback_;
  CheckpointSaver saver_;

  std::int64_t enqueued_ = 0;    // steps
  std::deque<Pending> pending_;  // oldest first
  TrainingProgress progress_;    // as reported
  std::int64_t epoch_ = 0;       // current or last
  std::int64_t saved_ = -1;      // the step of the newest checkpoint
  Clock::time_point last_report_;
  std::optional<double> gradient_scale_;  // factor of the gradients that the replica holds; empty: they are gone
  RankTimes times_;
  std::int64_t collected_ = 0;  // steps enqueued when times were last collected
};

}  // namespace gradring::train
