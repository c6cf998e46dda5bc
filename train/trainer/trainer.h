// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <memory>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "data/loader/batch_geometry.h"
#include "data/samplers/distributed_sampler.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/error.h"
#include "nn/backend/backend.h"
#include "nn/program/program.h"
#include "train/config/train_config.h"
#include "train/feed/batch_feed.h"
#include "train/report/metrics_sink.h"
#include "train/report/sha256.h"
#include "train/report/summary.h"
#include "train/trainer/replica.h"

namespace gradring::train {

/// A loss, of a step or of the test set, is no longer a finite number, or the gradients are none at the least loss scale.
/// Exit code 5.
class DivergedError : public Error {
 public:
  using Error::Error;
};

/// The world that a trainer works in: made in one place (setup.h, or a test), passed by reference.
struct TrainerWorld {
  kernels::Device& device;
  const kernels::KernelSet& kernels;
  nn::Backend& backend;
  comm::ProcessGroup& group;
  const data::Dataset& train_set;
  const data::Dataset& test_set;
  MetricsSink& metrics;
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
/// Errors    DivergedError, ReplicaError, comm::CommError, DeviceError, EnvironmentError (from the metrics).
class Trainer {
 public:
  /// Blocks until all ranks have come and taken over rank 0's weights.
  Trainer(const TrainConfig& config, const TrainerWorld& world);
  /// After an error, waits for steps that are still enqueued: they use what goes here.
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains and evaluates to the end. The same summary on every rank.
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

  void run_epoch(std::int64_t epoch);
  void enqueue_step(std::int64_t epoch, std::int64_t step);
  /// In the whole run, if nothing ends it early.
  std::int64_t all_steps() const;
  double learning_rate_of(const StepResult& result) const;
  bool enough_steps() const { return config_.steps > 0 && enqueued_ >= config_.steps; }
  /// Takes the results that are there, and waits for those that must be: all of them, or room for one more.
  void take_results(bool all);
  void report(const StepResult& result);
  void check_step(const StepResult& result);
  void check_finite(double loss, const std::string& what) const;
  Sha256 hash_of_weights();

  TrainConfig config_;
  TrainerWorld world_;
  data::DistributedSampler sampler_;
  data::BatchGeometry windows_;  // this rank's samples of the steps of an epoch
  Replica replica_;
  nn::Program eval_program_;
  std::unique_ptr<BatchFeed> feed_;

  std::int64_t enqueued_ = 0;    // steps
  std::deque<Pending> pending_;  // of these, the oldest first
  std::int64_t steps_ = 0;       // reported
  std::int64_t samples_ = 0;     // seen by all ranks
  Clock::time_point last_report_;
  double epoch_loss_sum_ = 0;  // over the samples of the running epoch whose loss was a number
  std::int64_t epoch_samples_ = 0;
  std::chrono::duration<double> training_time_{0};
};

}  // namespace gradring::train
