// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/process_group.h"
#include "kernels/cast/cast.h"
#include "nn/parameter/arena_layout.h"

namespace gradring::train {

/// In what form gradients travel between ranks.
struct WireSpec {
  kernels::DType dtype = kernels::DType::f32;  ///< f32, f16 or bf16
  comm::AllReduceAlgorithm algorithm = comm::AllReduceAlgorithm::automatic;
};

/// Sums buckets of f32 gradients over the ranks. In 16 bits half as much travels: each rank rounds its bucket, the
/// collective adds in f32 and rounds at every hop, and the sum is widened. Riders always travel as they are.
///
/// Order     enqueued on the stream of each call; one stream at a time.
/// Memory    in 16 bits, half an arena more, which the transport allocated.
/// Numerics  the same bits on every rank. In 16 bits off by world_size roundings of the partial sums at most; a sum that f16
///           cannot hold becomes infinite, so f16 is for gradients under a dynamic loss scale.
/// Threads   that of the trainer. Group, segment and layout must outlive it.
class GradientWire {
 public:
  /// `gradients` holds layout.elements() floats and was allocated by `group`. Blocks until all ranks have come.
  GradientWire(const WireSpec& spec, comm::ProcessGroup& group, comm::Segment& gradients, const nn::ArenaLayout& layout,
               const kernels::cast::Variant& cast);

  /// What it has the transport allocate.
  static std::size_t memory_bytes(const WireSpec& spec, const nn::ArenaLayout& layout) {
    return spec.dtype == kernels::DType::f32 ? 0 : layout.elements() * kernels::size_of(spec.dtype);
  }

  void enqueue_all_reduce(int bucket, kernels::Stream& stream);

 private:
  using Slice = nn::ArenaLayout::Slice;

  void enqueue_sum(comm::Segment& segment, const Slice& slice, kernels::DType dtype, kernels::Stream& stream);
  void enqueue_rounded_sum(const Slice& slice, kernels::Stream& stream);

  WireSpec spec_;
  comm::ProcessGroup& group_;
  comm::Segment& gradients_;
  const nn::ArenaLayout& layout_;
  kernels::cast::Variant cast_;
  std::unique_ptr<comm::Segment> rounded_;  // null in f32
};

}  // namespace gradring::train
