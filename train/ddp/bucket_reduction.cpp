// SPDX-License-Identifier: Apache-2.0
#include "train/ddp/bucket_reduction.h"

namespace gradring::train {

using kernels::DType;

BucketReduction::BucketReduction(const WireSpec& spec, const Parts& parts) : spec_(spec), parts_(parts) {
  const nn::ArenaLayout& layout = parts.gradients.layout();
  const int last = layout.buckets() - 1;
  const std::size_t in_bucket = layout.piggyback().offset - layout.bucket(last).offset;
  if (parts.loss_in_bucket && parts.shards.whole() && spec.dtype == DType::f32) {
    loss_ = reinterpret_cast<float*>(parts.gradients.data(last)) + in_bucket;
  } else {
    const std::size_t elements = layout.piggyback().elements;
    const int world = parts.group.world_size();
    loss_segment_ = parts.group.allocate(elements * static_cast<std::size_t>(world) * sizeof(float));
    const int shard = Shards(layout, world, parts.group.rank()).owner(last, in_bucket);
    loss_ = loss_segment_->as<float>() + elements * static_cast<std::size_t>(shard);
  }
  if (spec.dtype != DType::f32)
    rounded_.emplace(BucketMemorySpec{.dtype = spec.dtype, .slots = parts.gradients.slots()}, parts.group, layout);
}

void BucketReduction::enqueue_sum(int bucket, kernels::Stream& stream) {
  if (loss_segment_ && bucket + 1 == parts_.gradients.layout().buckets())
    parts_.group.all_reduce({.segment = loss_segment_.get(), .slice = {0, loss_segment_->size() / sizeof(float)}},
                            stream, spec_.algorithm);
  rounded_ ? enqueue_rounded_sum(bucket, stream) : enqueue_collective(parts_.gradients.range(bucket), stream);
}

void BucketReduction::enqueue_rounded_sum(int bucket, kernels::Stream& stream) {
  auto* const f32 = reinterpret_cast<float*>(parts_.gradients.data(bucket));
  std::byte* const rounded = rounded_->data(bucket);
  const Shards::Slice sum = parts_.shards.in_bucket(bucket);
  parts_.cast.run(stream, {.from = DType::f32,
                           .to = spec_.dtype,
                           .x = f32,
                           .y = rounded,
                           .elements = parts_.gradients.layout().bucket(bucket).elements});
  enqueue_collective(rounded_->range(bucket), stream);
  parts_.cast.run(stream, {.from = spec_.dtype,
                           .to = DType::f32,
                           .x = rounded + sum.offset * kernels::size_of(spec_.dtype),
                           .y = f32 + sum.offset,
                           .elements = sum.elements});
}

void BucketReduction::enqueue_collective(const comm::SegmentRange& range, kernels::Stream& stream) {
  parts_.shards.whole() ? parts_.group.all_reduce(range, stream, spec_.algorithm)
                        : parts_.group.reduce_scatter(range, stream);
}

}  // namespace gradring::train
