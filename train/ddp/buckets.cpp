// SPDX-License-Identifier: Apache-2.0
#include "train/ddp/buckets.h"

#include <algorithm>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::train {

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

Shards::Slice Shards::in_arena(int bucket) const {
  const Slice slice = in_bucket(bucket);
  return {layout_.bucket(bucket).offset + slice.offset, slice.elements};
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
  ShardPointers pointers;
  for (int bucket = 0; bucket < shards.layout().buckets(); ++bucket)
    pointers.push_back(data + shards.packed(bucket).offset);
  return pointers;
}

}  // namespace gradring::train
