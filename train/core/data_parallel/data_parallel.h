// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/program/program.h"
#include "train/core/data_parallel/device_replica.h"

namespace gradring::train {

/// Samples of each device but the last, if `devices` share `samples`: as torch.chunk, which may leave devices without.
std::int64_t samples_of_device(std::int64_t samples, std::int64_t devices);

/// PyTorch's DataParallel (--data-parallel): one process trains on several devices. In every pass
///
///   forward    replicate the weights and scatter the batch over all devices, which then run forward
///   backward   all devices run backward; their gradients are gathered and added on the first
///
/// The optimizer then updates on the first device, as if that had computed all. The gradient of each device is already
/// divided by the samples of the whole step, so that adding them gives the mean.
///
/// Order     the first device computes on the stream of the calls, the others on streams of their own, ordered by
///           events. Observers hear that a gradient is ready once it is gathered.
/// Memory    besides the replicas': an arena of gradients on the first device, into which others are copied.
/// Numerics  sums over the devices in their order; deterministic.
/// Errors    an error on another device is thrown where the first waits for it.
/// Source    Li and others, "PyTorch Distributed", VLDB 2020, section 2.2; torch/nn/parallel/data_parallel.py.
class DataParallel final : public nn::StepProgram {
 public:
  /// What the first device brings. All of it must outlive this.
  struct First {
    kernels::Device& device;  ///< allocates the arena for gathered gradients
    const kernels::KernelSet& kernels;
    nn::Program& program;  ///< for spec.max_batch samples
    /// Enqueues work for which the step waits, and counts its time.
    std::function<void(const std::function<void(kernels::Stream&)>&)> enqueue_exposed;
  };
  /// Splits batches of up to spec.max_batch * (others.size() + 1) samples.
  ///
  /// Errors    as DeviceReplica.
  DataParallel(const DeviceReplicaSpec& spec, First first, std::span<const FurtherDevice> others);

  void enqueue_forward(kernels::Stream& stream, const nn::Weights& weights, const Batch& batch,
                       nn::StepObserver& observer) override;
  void enqueue_backward(kernels::Stream& stream, const nn::Weights& weights, const nn::Gradients& gradients,
                        const LossTarget& target, nn::StepObserver& observer) override;
  void enqueue_empty_batch(kernels::Stream& stream, const nn::Weights& weights, const nn::Gradients& gradients,
                           nn::StepObserver& observer) override;

  /// Of the further devices together.
  MemoryTable peak_memory() const;
  /// Of the arena on the first device.
  static std::size_t gathered_bytes(const nn::ArenaLayout& layout) { return layout.elements() * sizeof(float); }

 private:
  void gather(kernels::Stream& stream, const DeviceReplica& from, const nn::Gradients& gradients);
  void drain_on_error(const std::function<void()>& work);
  /// The devices that have samples in the newest pass, without the first.
  std::span<const std::unique_ptr<DeviceReplica>> active() const { return std::span(others_).first(active_); }

  First first_;
  std::size_t sample_bytes_;
  kernels::accumulate::Variant accumulate_;
  kernels::Buffer gathered_;               // gradients of one other device
  std::unique_ptr<kernels::Event> ready_;  // weights and batch are on the first device
  std::int64_t chunk_ = 0;                 // samples of a device in the newest pass
  std::size_t active_ = 0;
  std::vector<std::unique_ptr<DeviceReplica>> others_;
};

}  // namespace gradring::train
