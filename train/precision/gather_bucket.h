// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/process_group.h"
#include "kernels/cast/cast.h"
#include "train/parallel/bucket_memory.h"
#include "train/parallel/shards.h"

namespace gradring::train {

/// What brings together weights of which every rank has its shards, in f32.
struct GatherParts {
  comm::ProcessGroup& group;
  const Shards& shards;
  kernels::cast::Variant cast;
};

/// Leaves a bucket whole in `to`, in that memory's type, on every rank. `mine` is this rank's shard of it.
void enqueue_gather(const GatherParts& parts, int bucket, const float* mine, const BucketMemory& to,
                    kernels::Stream& stream);

/// All buckets, in new memory of type `dtype`. Blocks until all ranks have come for it.
std::unique_ptr<BucketMemory> gather_whole(const GatherParts& parts, const ShardPointers& mine, kernels::DType dtype,
                                           kernels::Stream& stream);

}  // namespace gradring::train
