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

/// The first bucket of the next need that is not there, if there is a place that is not in use. A pass awaits all that it fetched,
/// for a need that comes in it: behind those before a window's last no join follows, and CUDA records none that is not joined.
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
    train::enqueue_gather(gather(), bucket, master_[static_cast<std::size_t>(bucket)], places_, communication);
    communication.record(*place.arrived);
  });
}

void PrefetchedWeights::await(int bucket) {
  Place& place = place_of(bucket);
  if (!std::exchange(place.awaited, true)) parts_.ddp.enqueue_wait(*place.arrived);
}

std::unique_ptr<BucketMemory> PrefetchedWeights::gather_whole(kernels::Stream& stream) {
  return train::gather_whole(gather(), master_, places_.dtype(), stream);
}

}  // namespace gradring::train
