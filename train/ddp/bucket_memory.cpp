// SPDX-License-Identifier: Apache-2.0
#include "train/ddp/bucket_memory.h"

#include <algorithm>

#include "kernels/runtime/error.h"

namespace gradring::train {

namespace {

/// The elements of each slot.
std::vector<std::size_t> slot_sizes(const BucketMemorySpec& spec, const nn::ArenaLayout& layout) {
  check(spec.slots >= 0, "bucket memory has a negative number of slots");
  const int slots = spec.slots == 0 ? layout.buckets() : std::min(spec.slots, layout.buckets());
  std::vector<std::size_t> sizes(static_cast<std::size_t>(slots));
  for (int bucket = 0; bucket < layout.buckets(); ++bucket) {
    std::size_t& size = sizes[static_cast<std::size_t>(bucket % slots)];
    size = std::max(size, layout.bucket(bucket).elements);
  }
  return sizes;
}

}  // namespace

BucketMemory::BucketMemory(const BucketMemorySpec& spec, comm::ProcessGroup& group, const nn::ArenaLayout& layout)
    : layout_(layout), dtype_(spec.dtype) {
  std::size_t elements = 0;
  for (const std::size_t size : slot_sizes(spec, layout)) {
    offsets_.push_back(elements);
    elements += size;
  }
  segment_ = group.allocate(elements * kernels::size_of(dtype_));
}

comm::SegmentRange BucketMemory::range(int bucket) const {
  return {.segment = segment_.get(),
          .slice = {offsets_[static_cast<std::size_t>(slot_of(bucket))], layout_.bucket(bucket).elements},
          .dtype = dtype_};
}

std::byte* BucketMemory::data(int bucket) const {
  return segment_->data() + range(bucket).slice.offset * kernels::size_of(dtype_);
}

ShardPointers shards_within(const Shards& shards, const BucketMemory& memory) {
  ShardPointers pointers;
  for (int bucket = 0; bucket < memory.layout().buckets(); ++bucket)
    pointers.push_back(reinterpret_cast<float*>(memory.data(bucket)) + shards.in_bucket(bucket).offset);
  return pointers;
}

nn::Gradients gradients_within(const BucketMemory& memory, float* piggyback) {
  nn::Gradients gradients{.layout = memory.layout(), .buckets = {}, .piggyback = piggyback};
  for (int bucket = 0; bucket < memory.layout().buckets(); ++bucket)
    gradients.buckets.push_back(reinterpret_cast<float*>(memory.data(bucket)));
  return gradients;
}

nn::Weights weights_within(const BucketMemory& memory) {
  nn::Weights weights{.layout = memory.layout(), .dtype = memory.dtype(), .buckets = {}};
  for (int bucket = 0; bucket < memory.layout().buckets(); ++bucket) weights.buckets.push_back(memory.data(bucket));
  return weights;
}

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
