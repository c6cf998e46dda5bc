// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/bucket_memory.h"

#include <algorithm>
#include <numeric>

#include "kernels/runtime/error.h"

namespace gradring::train {

namespace {

/// Elements of each place.
std::vector<std::size_t> sizes_of_places(const BucketMemorySpec& spec, const nn::ArenaLayout& layout) {
  check(spec.places >= 0, "buckets need a place to be");
  const int places = spec.places == 0 ? layout.buckets() : std::min(spec.places, layout.buckets());
  std::vector<std::size_t> sizes(static_cast<std::size_t>(places));
  for (int bucket = 0; bucket < layout.buckets(); ++bucket) {
    std::size_t& size = sizes[static_cast<std::size_t>(bucket % places)];
    size = std::max(size, layout.bucket(bucket).elements);
  }
  return sizes;
}

}  // namespace

std::size_t BucketMemory::bytes_of(const BucketMemorySpec& spec, const nn::ArenaLayout& layout) {
  const std::vector<std::size_t> sizes = sizes_of_places(spec, layout);
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) * kernels::size_of(spec.dtype);
}

BucketMemory::BucketMemory(const BucketMemorySpec& spec, comm::ProcessGroup& group, const nn::ArenaLayout& layout)
    : layout_(layout), dtype_(spec.dtype) {
  std::size_t elements = 0;
  for (const std::size_t size : sizes_of_places(spec, layout)) {
    offsets_.push_back(elements);
    elements += size;
  }
  segment_ = group.allocate(elements * kernels::size_of(dtype_));
}

comm::SegmentRange BucketMemory::range(int bucket) const {
  return {.segment = segment_.get(),
          .slice = {offsets_[static_cast<std::size_t>(place_of(bucket))], layout_.bucket(bucket).elements},
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

nn::Gradients gradients_within(const BucketMemory& memory, float* riders) {
  nn::Gradients gradients{.layout = memory.layout(), .buckets = {}, .riders = riders};
  for (int bucket = 0; bucket < memory.layout().buckets(); ++bucket)
    gradients.buckets.push_back(reinterpret_cast<float*>(memory.data(bucket)));
  return gradients;
}

nn::Weights weights_within(const BucketMemory& memory) {
  nn::Weights weights{.layout = memory.layout(), .dtype = memory.dtype(), .buckets = {}};
  for (int bucket = 0; bucket < memory.layout().buckets(); ++bucket) weights.buckets.push_back(memory.data(bucket));
  return weights;
}

}  // namespace gradring::train
