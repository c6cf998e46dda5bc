// SPDX-License-Identifier: Apache-2.0
#include "train/precision/gathered_weights.h"

namespace gradring::train {

using kernels::DType;

GatheredWeights::GatheredWeights(const Parts& parts, DType dtype)
    : parts_(parts),
      memory_({.dtype = dtype}, parts.group, parts.shards.layout()),
      packed_(parts.device.allocate(copied() ? parts.shards.elements() * sizeof(float) : 0)),
      view_(weights_within(memory_)),
      master_(copied() ? packed_shards(parts.shards, packed_.as<float>()) : shards_within(parts.shards, memory_)) {}

const float* GatheredWeights::whole_master() const {
  if (!copied()) return reinterpret_cast<const float*>(memory_.data(0));
  return parts_.shards.whole() ? packed_.as<float>() : nullptr;
}

RoundedCopy GatheredWeights::copy(int bucket) const {
  if (!copied()) return {};
  const std::size_t begin = parts_.shards.in_bucket(bucket).offset * kernels::size_of(memory_.dtype());
  return {.dtype = memory_.dtype(), .data = memory_.data(bucket) + begin};
}

void GatheredWeights::enqueue_refresh(kernels::Stream& stream) {
  for (int bucket = 0; copied() && bucket < parts_.shards.layout().buckets(); ++bucket)
    parts_.cast.run(stream, {.from = DType::f32,
                             .to = memory_.dtype(),
                             .x = master_[static_cast<std::size_t>(bucket)],
                             .y = copy(bucket).data,
                             .elements = parts_.shards.in_bucket(bucket).elements});
  enqueue_gather(stream);
}

void GatheredWeights::enqueue_gather(kernels::Stream& stream) {
  if (parts_.shards.whole()) return;
  for (int bucket = 0; bucket < parts_.shards.layout().buckets(); ++bucket)
    parts_.group.all_gather(memory_.range(bucket), stream);
}

}  // namespace gradring::train
