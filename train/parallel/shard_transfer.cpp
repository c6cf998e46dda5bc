// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/shard_transfer.h"

namespace gradring::train {

void ShardTransfer::scatter(const float* of_rank_0, const ShardPointers& to, Deadline deadline) {
  const auto& [device, group, stream, staging, shards] = parts_;
  for (int bucket = 0; bucket < shards.layout().buckets(); ++bucket) {
    const std::size_t bytes = staging.bytes(bucket);
    const Shards::Slice shard = shards.in_bucket(bucket);
    if (group.rank() == 0)
      stream.enqueue_copy(staging.data(bucket), of_rank_0 + shards.layout().bucket(bucket).offset, bytes);
    group.broadcast(staging.range(bucket), 0, stream);
    stream.enqueue_copy(to[static_cast<std::size_t>(bucket)], staging.data(bucket) + shard.offset * sizeof(float),
                        shard.elements * sizeof(float));
    stream.enqueue_zero(staging.data(bucket), bytes);
  }
  stream.synchronize(deadline);
}

void ShardTransfer::gather(const ShardPointers& from, float* to, Deadline deadline) {
  const auto& [device, group, stream, staging, shards] = parts_;
  for (int bucket = 0; bucket < shards.layout().buckets(); ++bucket) {
    const float* const shard = from[static_cast<std::size_t>(bucket)];
    if (!shards.whole()) enqueue_gather(bucket, shard);
    const void* const whole = shards.whole() ? static_cast<const void*>(shard) : staging.data(bucket);
    if (to) stream.enqueue_copy(to + shards.layout().bucket(bucket).offset, whole, staging.bytes(bucket));
  }
  stream.synchronize(deadline);
}

void ShardTransfer::enqueue_gather(int bucket, const float* from) {
  const Shards::Slice shard = parts_.shards.in_bucket(bucket);
  auto* const to = reinterpret_cast<float*>(parts_.staging.data(bucket)) + shard.offset;
  if (from != to) parts_.stream.enqueue_copy(to, from, shard.elements * sizeof(float));
  parts_.group.all_gather(parts_.staging.range(bucket), parts_.stream);
}

kernels::Buffer ShardTransfer::gather(const ShardPointers& from, Deadline deadline) {
  kernels::Buffer host =
      parts_.device.allocate(parts_.shards.layout().elements() * sizeof(float), kernels::MemoryKind::pinned);
  gather(from, host.as<float>(), deadline);
  return host;
}

}  // namespace gradring::train
