// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "comm/process_group.h"
#include "kernels/cast/cast.h"
#include "train/parallel/bucket_memory.h"
#include "train/parallel/bucket_sum.h"
#include "train/parallel/riders.h"
#include "train/parallel/shards.h"

namespace gradring::train {

/// In what form gradients travel between ranks.
struct WireSpec {
  kernels::DType dtype = kernels::DType::f32;  ///< f32, f16 or bf16
  comm::AllReduceAlgorithm algorithm = comm::AllReduceAlgorithm::automatic;
};

/// Sums buckets of f32 gradients over the ranks: all of it for every rank, or, where ranks keep shards, to each its own (a
/// reduce-scatter, always by the ring; the rest of the bucket is no longer of use). In 16 bits half as much travels: each
/// rank rounds its bucket, the collective adds in f32 and rounds at every hop, and the sum is widened. Riders always travel
/// as they are, and to all.
///
/// Order     enqueued on the stream of each call; one stream at a time.
/// Memory    in 16 bits, half as much again as the gradients' places, which the transport allocated.
/// Numerics  the same bits on every rank, and in a shard those that the whole sum has there. In 16 bits off by world_size
///           roundings of the partial sums at most; a sum that f16 cannot hold becomes infinite, so f16 is for gradients
///           under a dynamic loss scale.
/// Threads   that of the trainer. All that is given must outlive it.
class GradientWire final : public BucketSum {
 public:
  struct Parts {
    comm::ProcessGroup& group;
    const BucketMemory& gradients;
    const Shards& shards;
    kernels::cast::Variant cast;
    bool buckets_stay = true;  ///< a bucket keeps its place, so that riders may ride in it
  };
  /// Blocks until all ranks have come.
  GradientWire(const WireSpec& spec, const Parts& parts);

  void enqueue_sum(int bucket, kernels::Stream& stream) override;
  /// Where a pass leaves its riders, and finds their sums behind the last bucket.
  float* riders() const { return riders_.data(); }
  std::size_t bytes() const { return rounded_ ? rounded_->bytes() : 0; }

 private:
  void enqueue_rounded_sum(int bucket, kernels::Stream& stream);
  void enqueue_collective(const comm::SegmentRange& range, kernels::Stream& stream);

  WireSpec spec_;
  Parts parts_;
  Riders riders_;
  std::optional<BucketMemory> rounded_;  // none in f32
};

}  // namespace gradring::train
