// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/device.h"
#include "nn/models/model.h"
#include "nn/program/arena.h"
#include "train/core/ddp/buckets.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

/// A model's buffers: f32 tensors that forward updates in training, such as the running statistics of batch
/// normalization. Every rank updates its own. Rank 0's count: they are saved, and all ranks evaluate with them, as with
/// PyTorch's DistributedDataParallel, which broadcasts them before each forward pass.
///
/// Order     every call blocks, and completes earlier work of the stream first.
/// Threads   the trainer's. The parts must outlive it.
class ModelBuffers {
 public:
  struct Parts {
    kernels::Device& device;
    comm::ProcessGroup& group;
    kernels::Stream& stream;
  };
  /// Allocates them. Collective, like every call below, if the model has buffers; else nothing happens.
  ModelBuffers(const nn::Model& model, const Parts& parts);
  ModelBuffers(const ModelBuffers&) = delete;
  ModelBuffers& operator=(const ModelBuffers&) = delete;

  const std::vector<nn::Parameter>& tensors() const { return tensors_; }
  /// As Program::buffer_layout says; null without buffers.
  float* data() const { return memory_ ? reinterpret_cast<float*>(memory_->data(0)) : nullptr; }
  std::size_t bytes() const { return memory_ ? memory_->bytes() : 0; }

  void initialize(Deadline deadline);
  /// Fills all ranks' from rank 0's tensors.
  ///
  /// Errors    CheckpointError with `from`, on rank 0, as load_parameters.
  void load(std::span<const TensorRecord> of_rank_0, const std::filesystem::path& from, Deadline deadline);
  /// Copies rank 0's to all ranks.
  void synchronize(Deadline deadline);
  /// A copy of this rank's in host memory, and its view; not collective.
  kernels::Buffer on_host(Deadline deadline) const;
  /// Replaces this rank's by such a copy, or by zeros; not collective.
  void set(const kernels::Buffer& host, Deadline deadline);
  void clear();
  nn::Arena arena(const kernels::Buffer& host) const { return {layout_, host.as<float>()}; }

 private:
  kernels::Buffer host_memory() const;
  void copy_to_all(const kernels::Buffer& of_rank_0, Deadline deadline);

  Parts parts_;
  std::vector<nn::Parameter> tensors_;
  nn::ArenaLayout layout_;
  std::optional<BucketMemory> memory_;  // empty without buffers
};

}  // namespace gradring::train
