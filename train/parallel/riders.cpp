// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/riders.h"

namespace gradring::train {

Riders::Riders(comm::ProcessGroup& group, const BucketMemory& gradients, bool alone) : group_(group) {
  const nn::ArenaLayout& layout = gradients.layout();
  const int last = layout.buckets() - 1;
  const std::size_t in_bucket = layout.riders().offset - layout.bucket(last).offset;
  if (!alone) {
    data_ = reinterpret_cast<float*>(gradients.data(last)) + in_bucket;
    return;
  }
  const std::size_t elements = layout.riders().elements;
  segment_ = group.allocate(elements * static_cast<std::size_t>(group.world_size()) * sizeof(float));
  const int shard = Shards(layout, group.world_size(), group.rank()).owner(last, in_bucket);
  data_ = segment_->as<float>() + elements * static_cast<std::size_t>(shard);
}

void Riders::enqueue_sum(kernels::Stream& stream, comm::AllReduceAlgorithm algorithm) {
  if (!segment_) return;
  group_.all_reduce({.segment = segment_.get(), .slice = {0, segment_->size() / sizeof(float)}}, stream, algorithm);
}

}  // namespace gradring::train
