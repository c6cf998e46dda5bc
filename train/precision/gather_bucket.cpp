// SPDX-License-Identifier: Apache-2.0
#include "train/precision/gather_bucket.h"

namespace gradring::train {

using kernels::DType;

void enqueue_gather(const GatherParts& parts, int bucket, const float* mine, const BucketMemory& to,
                    kernels::Stream& stream) {
  const Shards::Slice shard = parts.shards.in_bucket(bucket);
  std::byte* const there = to.data(bucket) + shard.offset * kernels::size_of(to.dtype());
  if (to.dtype() == DType::f32)
    stream.enqueue_copy(there, mine, shard.elements * sizeof(float));
  else
    parts.cast.run(stream, {.from = DType::f32, .to = to.dtype(), .x = mine, .y = there, .elements = shard.elements});
  if (!parts.shards.whole()) parts.group.all_gather(to.range(bucket), stream);
}

std::unique_ptr<BucketMemory> gather_whole(const GatherParts& parts, const ShardPointers& mine, kernels::DType dtype,
                                           kernels::Stream& stream) {
  auto whole = std::make_unique<BucketMemory>(BucketMemorySpec{.dtype = dtype}, parts.group, parts.shards.layout());
  for (int bucket = 0; bucket < parts.shards.layout().buckets(); ++bucket)
    enqueue_gather(parts, bucket, mine[static_cast<std::size_t>(bucket)], *whole, stream);
  return whole;
}

}  // namespace gradring::train
