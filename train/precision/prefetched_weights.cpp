// SPDX-License-Identifier: Apache-2.0
#include "train/precision/prefetched_weights.h"

#include <algorithm>
#include <utility>

namespace gradring::train {

using kernels::DType;

PrefetchedWeights::PrefetchedWeights(const Parts& parts, DType dtype, int places)
    : parts_(parts),
      packed_(parts.device.allocate(parts.shards.elements() * sizeof(float))),
      master_(packed_shards(parts.shards, packed_.as<float>())),
      places_({.dtype = dtype, .places = places}, parts.group, parts.shards.layout()),
      view_(weights_within(places_)) {
  for (int place = 0; place < places_.places(); ++place)
    at_.push_back({.free = parts.device.make_event(), .arrived = parts.device.make_event()});
}

/// The optimizer may have changed all weights, and a recorded pass must not lean on one that was not.
void PrefetchedWeights::before_forward() {
  for (Place& place : at_) place.bucket = -1;
  if (!needs_.empty()) before_ = std::exchange(needs_, {});
}

void PrefetchedWeights::weights_needed(std::span<const int> parameters) {
  if (parameters.empty()) return;
  const auto [least, largest] = std::ranges::minmax(
      parameters, {}, [this](int parameter) { return parts_.shards.layout().bucket_of(parameter); });
  const Need now{parts_.shards.layout().bucket_of(least), parts_.shards.layout().bucket_of(largest)};
  needs_.push_back(now);
  for (int bucket = now.first; bucket <= now.last; ++bucket) fetch(bucket);
  for (int bucket = now.first; bucket <= now.last; ++bucket) await(bucket);
  fetch_next(now);
}

/// The first bucket of the next need that is not there, if there is a place that is not in use.
void PrefetchedWeights::fetch_next(const Need& now) {
  if (needs_.size() >= before_.size()) return;
  const Need& next = before_[needs_.size()];
  for (int bucket = next.first; bucket <= next.last; ++bucket) {
    const Place& place = place_of(bucket);
    if (place.bucket == bucket) continue;
    if (place.bucket < now.first || place.bucket > now.last) fetch(bucket);
    return;
  }
}

void PrefetchedWeights::fetch(int bucket) {
  Place& place = place_of(bucket);
  if (place.bucket == bucket) return;
  place.bucket = bucket;
  place.awaited = false;
  parts_.ddp.enqueue_behind(*place.free, [&](kernels::Stream& communication) {
    enqueue_bucket(bucket, places_, communication);
    communication.record(*place.arrived);
  });
}

void PrefetchedWeights::await(int bucket) {
  Place& place = place_of(bucket);
  if (!std::exchange(place.awaited, true)) parts_.ddp.enqueue_wait(*place.arrived);
}

void PrefetchedWeights::enqueue_bucket(int bucket, const BucketMemory& to, kernels::Stream& stream) {
  const Shards::Slice shard = parts_.shards.in_bucket(bucket);
  const float* const mine = master_[static_cast<std::size_t>(bucket)];
  std::byte* const there = to.data(bucket) + shard.offset * kernels::size_of(to.dtype());
  if (to.dtype() == DType::f32)
    stream.enqueue_copy(there, mine, shard.elements * sizeof(float));
  else
    parts_.cast.run(stream, {.from = DType::f32, .to = to.dtype(), .x = mine, .y = there, .elements = shard.elements});
  if (!parts_.shards.whole()) parts_.group.all_gather(to.range(bucket), stream);
}

std::unique_ptr<BucketMemory> PrefetchedWeights::gather_whole(kernels::Stream& stream) {
  auto whole =
      std::make_unique<BucketMemory>(BucketMemorySpec{.dtype = places_.dtype()}, parts_.group, parts_.shards.layout());
  for (int bucket = 0; bucket < parts_.shards.layout().buckets(); ++bucket) enqueue_bucket(bucket, *whole, stream);
  return whole;
}

}  // namespace gradring::train
