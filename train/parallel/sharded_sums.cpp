// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/sharded_sums.h"

namespace gradring::train {

ShardedSums::ShardedSums(const Parts& parts)
    : parts_(parts),
      memory_(parts.device.allocate(parts.shards.elements() * sizeof(float))),
      riders_(parts.device.allocate(parts.shards.layout().riders().elements * sizeof(float))) {
  for (int bucket = 0; bucket < parts.shards.layout().buckets(); ++bucket)
    collected_.push_back(parts.device.make_event());
}

void ShardedSums::enqueue_sum(int bucket, kernels::Stream& stream) {
  const nn::ArenaLayout& layout = parts_.shards.layout();
  parts_.wire.enqueue_sum(bucket, stream);
  const auto* const sums = reinterpret_cast<const float*>(parts_.gradients.data(bucket));
  const Shards::Slice packed = parts_.shards.packed(bucket);
  enqueue_collect(sums + parts_.shards.in_bucket(bucket).offset, memory_.as<float>() + packed.offset, packed.elements,
                  stream);
  if (bucket + 1 == layout.buckets())
    enqueue_collect(parts_.wire.riders(), riders_.as<float>(), layout.riders().elements, stream);
  stream.record(*collected_[static_cast<std::size_t>(bucket)]);
}

void ShardedSums::enqueue_collect(const float* from, float* to, std::size_t elements, kernels::Stream& stream) {
  if (first_pass_)
    stream.enqueue_copy(to, from, elements * sizeof(float));
  else
    parts_.accumulate.run(stream, {.dtype = kernels::DType::f32, .x = from, .y = to, .elements = elements});
}

}  // namespace gradring::train
