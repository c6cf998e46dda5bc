// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "comm/process_group.h"
#include "nn/parameter/arena_layout.h"
#include "nn/parameter/gradients.h"
#include "nn/parameter/weights.h"
#include "train/parallel/shards.h"

namespace gradring::train {

struct BucketMemorySpec {
  kernels::DType dtype = kernels::DType::f32;
  int places = 0;  ///< for as many buckets at once; 0: all
};

/// Memory in which collectives find the buckets of an arena. With a place for every bucket it lies as the arena does; with
/// fewer, buckets take turns: bucket b comes to place b % places, each of which is as large as the largest that comes to it.
///
/// Threads   that of the trainer. The layout must outlive it.
class BucketMemory {
 public:
  /// Blocks until all ranks have come. Zeroed.
  BucketMemory(const BucketMemorySpec& spec, comm::ProcessGroup& group, const nn::ArenaLayout& layout);

  const nn::ArenaLayout& layout() const { return layout_; }
  kernels::DType dtype() const { return dtype_; }
  int places() const { return static_cast<int>(offsets_.size()); }
  int place_of(int bucket) const { return bucket % places(); }
  /// A bucket where it is when its turn has come: for collectives, and for everyone else.
  comm::SegmentRange range(int bucket) const;
  std::byte* data(int bucket) const;
  /// A bucket's size.
  std::size_t bytes(int bucket) const { return layout_.bucket(bucket).elements * kernels::size_of(dtype_); }
  /// Of all of it.
  std::size_t bytes() const { return segment_->size(); }
  /// What such memory would take.
  static std::size_t bytes_of(const BucketMemorySpec& spec, const nn::ArenaLayout& layout);

 private:
  const nn::ArenaLayout& layout_;
  kernels::DType dtype_;
  std::vector<std::size_t> offsets_;  // of the places, in elements
  std::unique_ptr<comm::Segment> segment_;
};

/// This rank's shards of f32 buckets, where they are.
ShardPointers shards_within(const Shards& shards, const BucketMemory& memory);
/// f32 gradients, of which the last bucket's riders lie at `riders`.
nn::Gradients gradients_within(const BucketMemory& memory, float* riders);
/// Weights of the memory's type.
nn::Weights weights_within(const BucketMemory& memory);

}  // namespace gradring::train
