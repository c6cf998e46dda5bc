// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "data/loader/batch.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/program/program.h"
#include "train/optim/optimizer.h"
#include "train/parallel/distributed_data_parallel.h"

namespace gradring::train {

/// What a step works with; made by the trainer, lives longer than the step.
struct StepParts {
  kernels::Device& device;
  kernels::Stream& stream;
  const kernels::KernelSet& kernels;
  nn::Program& program;
  const nn::Arena& weights;
  const nn::Arena& gradients;  ///< with one rider: the loss
  DistributedDataParallel& ddp;
  Optimizer& optimizer;
};

/// One optimizer step: copy the batch to the device, forward, loss, backward with all-reduce, update. The rest of the
/// trainer only decides which batches come, and what to report.
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
  /// Returns   the mean loss over the global batch, before the update; the same bits on every rank.
  /// Errors    comm::CommError, DeviceError.
  double run(const Input& input);

  /// Riders that the gradient arena must have: the sum of the losses.
  static constexpr std::size_t kRiders = 1;

 private:
  void enqueue_state(double learning_rate);

  StepParts parts_;
  kernels::step_state::Variant advance_;
  kernels::Buffer images_;
  kernels::Buffer labels_;
  kernels::Buffer correct_;
  kernels::Buffer state_;       // kernels::step_state::StepState
  kernels::Buffer host_state_;  // its pinned image, from which learning rate and scale are copied
  kernels::Buffer host_loss_;   // pinned
};

}  // namespace gradring::train
