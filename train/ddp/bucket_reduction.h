// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "comm/process_group.h"
#include "kernels/elementwise/elementwise.h"
#include "train/ddp/bucket_memory.h"

namespace gradring::train {

/// The form in which gradients travel between ranks (--wire-dtype, --allreduce).
struct WireSpec {
  kernels::DType dtype = kernels::DType::f32;  ///< f32, f16 or bf16
  comm::AllReduceAlgorithm algorithm = comm::AllReduceAlgorithm::automatic;
};

/// Sums buckets of f32 gradients over the ranks: by an all-reduce where each rank needs whole sums, or by a
/// reduce-scatter (always a ring) where it needs its shard; the rest of the bucket is then undefined. With a 16-bit
/// wire type half as much travels: each rank rounds its bucket, the collective adds in f32 and rounds at every hop, and
/// the sum is widened. The loss always travels in f32, and all ranks get its sum: inside the last bucket where that is
/// all-reduced in f32, else by an all-reduce of its own, in which it occupies the shard that it would have in the
/// bucket, so that the order of the sum and its bits are the same.
///
/// Order     enqueued on the stream of each call; one stream at a time.
/// Memory    with a 16-bit wire type half as much again as the gradients' slots, from the transport.
/// Numerics  the same bits on every rank; a shard has the bits of the whole sum. In 16 bits the error is at most
///           world_size roundings of the partial sums; a sum beyond f16's range becomes infinite, so f16 needs a
///           dynamic loss scale.
/// Threads   the trainer's. The parts must outlive it.
class BucketReduction {
 public:
  struct Parts {
    comm::ProcessGroup& group;
    const BucketMemory& gradients;
    const Shards& shards;
    kernels::cast::Variant cast;
    bool loss_in_bucket = true;  ///< if possible; not where buckets share slots
  };
  /// Collective.
  BucketReduction(const WireSpec& spec, const Parts& parts);

  void enqueue_sum(int bucket, kernels::Stream& stream);
  /// Where a pass writes its loss, and finds the sum once the last bucket is summed.
  float* loss_slot() const { return loss_; }
  std::size_t bytes() const { return rounded_ ? rounded_->bytes() : 0; }

 private:
  void enqueue_rounded_sum(int bucket, kernels::Stream& stream);
  void enqueue_collective(const comm::SegmentRange& range, kernels::Stream& stream);

  WireSpec spec_;
  Parts parts_;
  std::unique_ptr<comm::Segment> loss_segment_;  // a slot per shard of the last bucket; null where the loss is in it
  float* loss_ = nullptr;
  std::optional<BucketMemory> rounded_;  // empty in f32
};

}  // namespace gradring::train
