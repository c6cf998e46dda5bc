// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "nn/program/program.h"
#include "train/records/metrics/memory_ledger.h"

namespace gradring::train {

/// A device besides the first one, and what computes there. Both must outlive what uses them.
struct FurtherDevice {
  kernels::Device& device;
  nn::Backend& backend;
  /// Called once, in the order of the device's stream, before its first work; may be empty. On a CPU it sets the number
  /// of compute threads of the thread that plays the device.
  std::function<void()> begin{};
};

/// What every device computes.
struct DeviceReplicaSpec {
  const nn::Model& model;
  const nn::ArenaLayout& layout;
  kernels::Shape sample;       ///< height, width, channels
  std::int64_t max_batch = 0;  ///< samples of this device
  kernels::DType dtype = kernels::DType::f32;
  nn::Checkpointing checkpointing;
};

/// The copy of the model on a further device: weights that are copied there for every pass, a slice of the batch, and
/// the gradients of that slice. The device's stream runs its work beside that of the others: on a CPU it is a thread.
///
/// Memory    one copy of the weights, one arena of gradients, a slice of the batch, and the activations of that slice.
/// Threads   the trainer's.
class DeviceReplica {
 public:
  /// Errors    as nn::Program; DeviceError if memory is exhausted.
  DeviceReplica(const DeviceReplicaSpec& spec, const FurtherDevice& further);

  /// Replicates the weights, scatters the samples, and runs forward. `weights` and `batch`, this device's samples, are
  /// on the first device, from the moment that `ready` marks there.
  void enqueue_forward(const kernels::Event& ready, const nn::Weights& weights, const nn::Program::Batch& batch);
  /// Scatters the labels and runs backward. `target` has the labels of this device's first sample, and the loss scale,
  /// on the first device.
  void enqueue_backward(const nn::Program::LossTarget& target);
  /// Reached when the newest backward is done.
  const kernels::Event& done() const { return *done_; }
  /// Gradients and loss of the newest backward, on this device.
  const nn::Arena& gradients() const { return gradients_; }
  /// Waits until the device no longer uses the caller's memory; for a step that failed. Never throws.
  void drain() noexcept;

  MemoryTable peak_memory() const { return memory_.peaks(); }
  /// What such a replica will allocate, if its program needs `program`.
  static MemoryTable planned_memory(const DeviceReplicaSpec& spec, const nn::ProgramMemory& program);

 private:
  const nn::ArenaLayout& layout_;
  std::size_t sample_bytes_;
  std::int64_t count_ = 0;  // samples of the newest forward
  MemoryLedger memory_;
  nn::Program program_;
  kernels::Buffer weight_memory_;
  kernels::Buffer gradient_memory_;
  kernels::Buffer images_;
  kernels::Buffer labels_;
  kernels::Buffer loss_scale_;
  kernels::Buffer step_;  // its number
  kernels::Buffer correct_;
  nn::Weights weights_;
  nn::Arena gradients_;
  nn::NoObserver nobody_;
  std::unique_ptr<kernels::Event> done_;
  std::unique_ptr<kernels::Stream> stream_;  // last: its work uses the members above
};

}  // namespace gradring::train
