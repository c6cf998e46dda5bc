// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <memory>
#include <optional>

#include "comm/process_group.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/kernel_set.h"
#include "nn/program/program.h"
#include "train/core/ddp/buckets.h"
#include "train/core/ddp/distributed_data_parallel.h"

namespace gradring::train {

/// The form in which gradients travel between ranks (--wire-dtype, --allreduce).
struct WireSpec {
  kernels::DType dtype = kernels::DType::f32;  ///< f32, f16 or bf16
  comm::AllReduceAlgorithm algorithm = comm::AllReduceAlgorithm::automatic;
};

/// Device memory of a reducer, besides the gradients that backward writes.
struct ReducerBytes {
  std::size_t sums = 0;  ///< sums over the ranks that are collected in memory of their own
  std::size_t wire = 0;  ///< what travels in another type than f32, from the transport
};

/// Turns the gradients of one step's backward passes (micro-batches) into their sums over passes and ranks.
///
///   for each pass:  begin, forward and backward with this observer, enqueue_end;  after the last pass sums() hold
///
/// Four implementations:
///   replicated   each bucket is summed where backward wrote it: every rank gets all sums, or with ZeRO 1 its shards
///   accumulated  sums the passes on the rank, and hands the last one to another reducer: PyTorch's no_sync
///   sharded      every rank gets the sums of its shards (ZeRO 2 and 3); buckets share a few slots
///   exact        sums 64-bit integers, whose bits do not depend on the order (--reproducible)
///
/// Threads   the trainer's.
class GradientReducer : public nn::StepObserver {
 public:
  /// The position of a pass in its step.
  struct Pass {
    bool first = true;
    bool last = true;
    auto operator<=>(const Pass&) const = default;
  };
  /// Begins a pass. Returns where backward writes gradients and loss.
  virtual const nn::Gradients& begin(Pass pass) = 0;
  /// Where the last pass writes.
  virtual const nn::Gradients& gradients() const = 0;
  /// To be called when the whole pass is enqueued.
  virtual void enqueue_end() = 0;
  /// The factor of all gradients, in device memory; called once, before the first pass.
  virtual void set_loss_scale(const float* /*loss_scale*/) {}

  /// The sums of this rank's shards, and of the losses. On one rank, some may still be in ReducerParts::partial_sums:
  /// the check adds them up (NonFiniteCheck), with all else that it finds of them in one launch.
  virtual ShardPointers sums() const = 0;
  virtual const float* loss_sum() const = 0;
  virtual ReducerBytes bytes() const = 0;
};

struct GradientReducerSpec {
  WireSpec wire;
  bool sharded = false;
  bool accumulates = false;      ///< sums passes on the rank first; not with exact_terms
  std::int64_t exact_terms = 0;  ///< shards of all ranks in a step, for exact sums; 0: sums in f32
};

/// What reducers work with. All of it must outlive them.
struct ReducerParts {
  kernels::Device& device;
  const kernels::KernelSet& kernels;
  comm::ProcessGroup& group;
  kernels::Stream& stream;        ///< of forward and backward
  const BucketMemory& gradients;  ///< where backward writes; with a slot per bucket unless sharded
  const Shards& shards;
  DistributedDataParallel& ddp;
  kernels::PartialSums& partial_sums;  ///< that backward has left, and nobody has added up yet
};

/// Collective.
std::unique_ptr<GradientReducer> make_gradient_reducer(const GradientReducerSpec& spec, const ReducerParts& parts);
std::unique_ptr<GradientReducer> make_exact_reducer(const GradientReducerSpec& spec, const ReducerParts& parts);

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
