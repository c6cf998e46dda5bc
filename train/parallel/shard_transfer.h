// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/process_group.h"
#include "kernels/runtime/device.h"
#include "train/parallel/bucket_memory.h"
#include "train/parallel/shards.h"

namespace gradring::train {

/// Whole arenas of f32 between host memory and the shards of all ranks, bucket by bucket over memory of the gradients, which
/// is free between steps.
///
/// Order     every call blocks. What the stream was given before is done first.
/// Threads   that of the trainer. What is given must outlive it.
class ShardTransfer {
 public:
  struct Parts {
    kernels::Device& device;
    comm::ProcessGroup& group;
    kernels::Stream& stream;
    const BucketMemory& staging;  ///< f32; what it holds is lost
    const Shards& shards;
  };
  explicit ShardTransfer(const Parts& parts) : parts_(parts) {}

  /// Gives every rank its shards of rank 0's arena, which holds layout.elements() floats in pinned memory; on other ranks it
  /// may be null. Leaves zeros in the staging memory. Blocks until all ranks have come.
  void scatter(const float* of_rank_0, const ShardPointers& to, Deadline deadline);
  /// The inverse, for every rank that names a place for it. Blocks until all ranks have come, unless every rank has all.
  void gather(const ShardPointers& from, float* to, Deadline deadline);
  /// The same in new pinned memory.
  kernels::Buffer gather(const ShardPointers& from, Deadline deadline);

 private:
  void enqueue_gather(int bucket, const float* from);

  Parts parts_;
};

}  // namespace gradring::train
