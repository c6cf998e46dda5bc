// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/device.h"
#include "nn/program/arena.h"

namespace gradring::train {

struct BucketLimits {
  std::size_t first_bytes = 1024 * 1024;      ///< small, so that the first all-reduce starts early
  std::size_t rest_bytes = 25 * 1024 * 1024;  ///< large, so that the others are efficient
};

/// Groups gradients, in the order in which backward finishes them, into buckets that are all-reduced as one: a bucket
/// takes tensors until its bytes reach its limit.
///
/// Returns   indices into `parameters`, bucket by bucket, in the order of `ready_order`.
/// Source    torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size.
std::vector<std::vector<int>> make_buckets(std::span<const nn::Parameter> parameters, std::span<const int> ready_order,
                                           const BucketLimits& limits);

/// The largest number of neighbouring buckets that one plan's parameters span. `groups` lists the parameters of each
/// plan.
int buckets_at_once(const nn::ArenaLayout& layout, std::span<const std::vector<int>> groups);

/// ZeRO's partition of an arena: each rank owns an equal shard of every bucket.
///
///   arena, 2 shards    | bucket 0: shard 0 | shard 1 | bucket 1: shard 0 | shard 1 |
///   packed, of rank 1  | bucket 0's shard 1 | bucket 1's shard 1 |
///
/// Memory for own shards only (optimizer state, say) is packed. With one shard every rank owns everything, and packed
/// memory is laid out as the arena.
class Shards {
 public:
  using Slice = nn::ArenaLayout::Slice;

  /// Divides each bucket into `count` shards; this rank owns shard `index`. The layout must outlive it.
  ///
  /// Errors    InvalidArgument if `index` is out of range, or a bucket is not padded to a multiple of `count`.
  Shards(const nn::ArenaLayout& layout, int count, int index);

  const nn::ArenaLayout& layout() const { return layout_; }
  int count() const { return static_cast<int>(count_); }
  /// Whether every rank owns everything.
  bool whole() const { return count_ == 1; }

  /// This rank's shard of a bucket: relative to the bucket, and to packed memory.
  Slice in_bucket(int bucket) const;
  Slice packed(int bucket) const;
  /// The part of a parameter, and of the padding after it, that is in this rank's shard of a bucket.
  struct Part {
    int parameter = 0;
    Slice slice{};  ///< relative to the shard
  };
  /// The non-empty parts of a shard, in memory order and without gaps.
  std::vector<Part> parts(int bucket) const;
  /// Size of a rank's shards of all buckets.
  std::size_t elements() const { return layout_.elements() / count_; }

  /// The rank whose shard holds an element, given relative to the bucket.
  int owner(int bucket, std::size_t element) const;

 private:
  const nn::ArenaLayout& layout_;
  std::size_t count_;
  std::size_t index_;
};

/// Where this rank's shard of each bucket begins.
using ShardPointers = std::vector<float*>;

/// In packed memory of shards.elements() floats at `data`.
ShardPointers packed_shards(const Shards& shards, float* data);

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
