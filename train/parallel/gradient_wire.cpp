// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/gradient_wire.h"

namespace gradring::train {

using kernels::DType;

GradientWire::GradientWire(const WireSpec& spec, const Parts& parts)
    : spec_(spec),
      parts_(parts),
      riders_(parts.group, parts.gradients, !parts.shards.whole() || !parts.buckets_stay || spec.dtype != DType::f32) {
  if (spec.dtype != DType::f32)
    rounded_.emplace(BucketMemorySpec{.dtype = spec.dtype, .places = parts.gradients.places()}, parts.group,
                     parts.gradients.layout());
}

void GradientWire::enqueue_sum(int bucket, kernels::Stream& stream) {
  if (bucket + 1 == parts_.gradients.layout().buckets()) riders_.enqueue_sum(stream, spec_.algorithm);
  rounded_ ? enqueue_rounded_sum(bucket, stream) : enqueue_collective(parts_.gradients.range(bucket), stream);
}

void GradientWire::enqueue_rounded_sum(int bucket, kernels::Stream& stream) {
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

void GradientWire::enqueue_collective(const comm::SegmentRange& range, kernels::Stream& stream) {
  parts_.shards.whole() ? parts_.group.all_reduce(range, stream, spec_.algorithm)
                        : parts_.group.reduce_scatter(range, stream);
}

}  // namespace gradring::train
