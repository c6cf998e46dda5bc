// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "data/loader/batch.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/program/program.h"
#include "train/optim/optimizer.h"
#include "train/parallel/distributed_data_parallel.h"
#include "train/precision/compute_weights.h"
#include "train/precision/loss_scaling.h"
#include "train/trainer/device_batch.h"

namespace gradring::train {

/// What a step works with; lives longer than the step.
struct StepParts {
  kernels::Device& device;
  kernels::Stream& stream;
  const kernels::KernelSet& kernels;
  nn::Program& program;
  const nn::Arena& master;     ///< the weights in f32
  ComputeWeights& weights;     ///< the same as the program reads them
  const nn::Arena& gradients;  ///< with one rider: the loss
  DistributedDataParallel& ddp;
  Optimizer& optimizer;
  LossScaling loss_scaling;
};

/// What came of a step.
struct StepResult {
  double loss = 0;       ///< mean over the global batch, before the update; the same bits on every rank
  float loss_scale = 1;  ///< that the step was made with
  bool skipped = false;  ///< a gradient was not finite, so no weight was changed
};

/// One optimizer step: copy the batch to the device, forward, loss, backward with all-reduce, update. The rest of the
/// trainer only decides which batches come, and what to report.
///
/// With loss scaling, the sums of the gradients are searched for what is not finite before the update: the device itself
/// decides whether to skip it, and every rank decides alike, for the sums have the same bits everywhere.
class TrainStep {
 public:
  TrainStep(const StepParts& parts, const kernels::Shape& sample);

  struct Input {
    const data::Batch& batch;
    std::int64_t global_samples = 0;  ///< in this step's batches of all ranks
    double learning_rate = 0;
    Deadline deadline;
  };
  /// Blocks until the step is done.
  ///
  /// Errors    comm::CommError, DeviceError.
  StepResult run(const Input& input);

  /// Riders that the gradient arena must have: the sum of the losses.
  static constexpr std::size_t kRiders = 1;

 private:
  using StepState = kernels::step_state::StepState;

  StepState* state() const { return state_.as<StepState>(); }
  void enqueue_learning_rate(double learning_rate);
  void enqueue_search();

  StepParts parts_;
  kernels::step_state::Variant advance_;
  kernels::sum_of_squares::Variant search_;
  DeviceBatch batch_;
  kernels::Buffer correct_;
  kernels::Buffer sum_of_squares_;
  kernels::Buffer search_workspace_;
  kernels::Buffer state_;       // StepState
  kernels::Buffer host_state_;  // pinned: what goes over before a step, what came of it after
  kernels::Buffer host_loss_;   // pinned
};

}  // namespace gradring::train
