// SPDX-License-Identifier: Apache-2.0
#include "train/core/ddp/buckets.h"

#include <algorithm>
#include <string>

#include "kernels/base/error.h"

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

std::vector<std::vector<int>> make_buckets(std::span<const nn::Parameter> parameters, std::span<const int> ready_order,
                                           const BucketLimits& limits) {
  std::vector<std::vector<int>> buckets;
  std::size_t bytes = 0;
  bool open = false;
  for (int index : ready_order) {
    if (!open) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(index);
    bytes += static_cast<std::size_t>(parameters[static_cast<std::size_t>(index)].shape.elements()) * sizeof(float);
    open = bytes < (buckets.size() == 1 ? limits.first_bytes : limits.rest_bytes);
  }
  return buckets;
}

int buckets_at_once(const nn::ArenaLayout& layout, std::span<const std::vector<int>> groups) {
  int most = 1;
  for (const std::vector<int>& group : groups) {
    if (group.empty()) continue;
    const auto [least, largest] =
        std::ranges::minmax(group, {}, [&layout](int parameter) { return layout.bucket_of(parameter); });
    most = std::max(most, layout.bucket_of(largest) - layout.bucket_of(least) + 1);
  }
  return most;
}

Shards::Shards(const nn::ArenaLayout& layout, int count, int index)
    : layout_(layout), count_(static_cast<std::size_t>(count)), index_(static_cast<std::size_t>(index)) {
  check(count > 0 && index >= 0 && index < count,
        "shard " + std::to_string(index) + " of " + std::to_string(count) + " does not exist");
  for (int bucket = 0; bucket < layout.buckets(); ++bucket)
    check(layout.bucket(bucket).elements % count_ == 0,
          "bucket " + std::to_string(bucket) + " is not padded to " + std::to_string(count) + " equal shards");
}

Shards::Slice Shards::in_bucket(int bucket) const {
  const std::size_t each = layout_.bucket(bucket).elements / count_;
  return {index_ * each, each};
}

Shards::Slice Shards::packed(int bucket) const {
  return {layout_.bucket(bucket).offset / count_, layout_.bucket(bucket).elements / count_};
}

std::vector<Shards::Part> Shards::parts(int bucket) const {
  const auto begin_of = [&](int parameter) {
    return layout_.parameter(parameter).offset - layout_.bucket(bucket).offset;
  };
  std::vector<int> inside;
  for (int parameter = 0; parameter < layout_.parameters(); ++parameter)
    if (layout_.bucket_of(parameter) == bucket) inside.push_back(parameter);
  std::ranges::sort(inside, {}, begin_of);

  const Slice shard = in_bucket(bucket);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const std::size_t next = i + 1 < inside.size() ? begin_of(inside[i + 1]) : layout_.bucket(bucket).elements;
    const std::size_t first = std::max(begin_of(inside[i]), shard.offset);
    const std::size_t last = std::min(next, shard.offset + shard.elements);
    if (first < last) parts.push_back({.parameter = inside[i], .slice = {first - shard.offset, last - first}});
  }
  return parts;
}

int Shards::owner(int bucket, std::size_t element) const {
  return static_cast<int>(element / (layout_.bucket(bucket).elements / count_));
}

ShardPointers packed_shards(const Shards& shards, float* data) {
  return shards.layout().each_bucket([&](int bucket) { return data + shards.packed(bucket).offset; });
}

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
  return memory.layout().each_bucket(
      [&](int bucket) { return reinterpret_cast<float*>(memory.data(bucket)) + shards.in_bucket(bucket).offset; });
}

nn::Gradients gradients_within(const BucketMemory& memory, float* piggyback) {
  const auto begin_of = [&](int bucket) { return reinterpret_cast<float*>(memory.data(bucket)); };
  return {.layout = memory.layout(), .buckets = memory.layout().each_bucket(begin_of), .piggyback = piggyback};
}

nn::Weights weights_within(const BucketMemory& memory) {
  const auto begin_of = [&](int bucket) -> const std::byte* { return memory.data(bucket); };
  return {.layout = memory.layout(), .dtype = memory.dtype(), .buckets = memory.layout().each_bucket(begin_of)};
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
