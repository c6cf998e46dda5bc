// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "comm/process_group.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/runtime/device.h"
#include "nn/program/arena.h"

namespace gradring::train {

/// Parameters that are not trained (nn::Parameter::frozen), which every rank keeps whole: they have no gradient, no
/// optimizer state, no bucket and no shard. In f16 and bf16 layers read a rounded copy, as with trained weights.
///
/// Order     every call blocks, and completes earlier work of the stream first.
/// Threads   the trainer's. The parts must outlive it.
class FrozenWeights {
 public:
  struct Parts {
    kernels::Device& device;
    comm::ProcessGroup& group;
    kernels::Stream& stream;
    kernels::cast::Variant cast;
  };
  /// Allocates them. Collective, as load(), if the layout has frozen parameters; else nothing happens. Layers read
  /// `dtype`.
  FrozenWeights(const nn::ArenaLayout& layout, kernels::DType dtype, const Parts& parts);

  /// What layers read, as ArenaLayout places frozen parameters; null without any.
  const std::byte* data() const;
  /// Copies rank 0's layout.frozen_elements() floats, in pinned memory, to all ranks.
  void load(const float* of_rank_0, Deadline deadline);
  /// Copies them to host memory; not collective.
  void copy_to(float* host, Deadline deadline) const;

  /// What the transport allocated.
  std::size_t bytes() const { return master_ ? master_->size() : 0; }

 private:
  Parts parts_;
  kernels::DType dtype_;
  std::size_t elements_;
  std::unique_ptr<comm::Segment> master_;  // f32; null without frozen parameters
  kernels::Buffer rounded_;                // empty in f32
};

}  // namespace gradring::train
