// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/device.h"
#include "nn/parameter/arena.h"
#include "train/ddp/buckets.h"

namespace gradring::train {

struct BucketMemorySpec {
  kernels::DType dtype = kernels::DType::f32;
  int slots = 0;  ///< buckets that fit at once; 0: all
};

/// Memory of an arena's buckets that collectives work on. With a slot per bucket it is laid out as the arena; with
/// fewer slots, buckets share them: bucket b uses slot b % slots, which is as large as its largest bucket.
///
/// Threads   the trainer's. The layout must outlive it.
class BucketMemory {
 public:
  /// Collective; zeroed.
  BucketMemory(const BucketMemorySpec& spec, comm::ProcessGroup& group, const nn::ArenaLayout& layout);

  const nn::ArenaLayout& layout() const { return layout_; }
  kernels::DType dtype() const { return dtype_; }
  int slots() const { return static_cast<int>(offsets_.size()); }
  int slot_of(int bucket) const { return bucket % slots(); }
  /// A bucket in its slot: for collectives, and for kernels.
  comm::SegmentRange range(int bucket) const;
  std::byte* data(int bucket) const;
  std::size_t bytes(int bucket) const { return layout_.bucket(bucket).elements * kernels::size_of(dtype_); }
  std::size_t bytes() const { return segment_->size(); }

 private:
  const nn::ArenaLayout& layout_;
  kernels::DType dtype_;
  std::vector<std::size_t> offsets_;  // of the slots, in elements
  std::unique_ptr<comm::Segment> segment_;
};

/// This rank's shards of f32 buckets.
ShardPointers shards_within(const Shards& shards, const BucketMemory& memory);
/// f32 gradients, with the piggybacked scalars at `piggyback`.
nn::Gradients gradients_within(const BucketMemory& memory, float* piggyback);
/// Weights of the memory's type.
nn::Weights weights_within(const BucketMemory& memory);

/// Copies whole f32 arenas between host memory and the shards of all ranks, bucket by bucket through the memory of the
/// gradients, which is free between steps.
///
/// Order     every call blocks, and completes earlier work of the stream first.
/// Threads   the trainer's. The parts must outlive it.
class ShardTransfer {
 public:
  struct Parts {
    kernels::Device& device;
    comm::ProcessGroup& group;
    kernels::Stream& stream;
    const BucketMemory& staging;  ///< f32; overwritten
    const Shards& shards;
  };
  explicit ShardTransfer(const Parts& parts) : parts_(parts) {}

  /// Collective. Copies rank 0's arena, layout.elements() floats in pinned memory, to the shards of all ranks; other
  /// ranks may pass null. Leaves zeros in the staging memory.
  void scatter(const float* of_rank_0, const ShardPointers& to, Deadline deadline);
  /// The inverse, for every rank that passes memory. Collective, unless every rank owns everything.
  void gather(const ShardPointers& from, float* to, Deadline deadline);
  /// The same into new pinned memory.
  kernels::Buffer gather(const ShardPointers& from, Deadline deadline);

 private:
  void enqueue_gather(int bucket, const float* from);

  Parts parts_;
};

}  // namespace gradring::train
