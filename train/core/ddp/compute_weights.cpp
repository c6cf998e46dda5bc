// SPDX-License-Identifier: Apache-2.0
#include "train/core/ddp/compute_weights.h"

#include <algorithm>
#include <utility>

namespace gradring::train {
namespace {

using kernels::DType;

/// Rounds or copies this rank's shard of a bucket into `to`, and gathers the others there.
void enqueue_gather_bucket(const WeightParts& parts, int bucket, const float* shard, const BucketMemory& to,
                           kernels::Stream& stream) {
  const Shards::Slice slice = parts.shards.in_bucket(bucket);
  std::byte* const there = to.data(bucket) + slice.offset * kernels::size_of(to.dtype());
  if (to.dtype() == DType::f32)
    stream.enqueue_copy(there, shard, slice.elements * sizeof(float));
  else
    parts.cast.run(stream, {.from = DType::f32, .to = to.dtype(), .x = shard, .y = there, .elements = slice.elements});
  if (!parts.shards.whole()) parts.group.all_gather(to.range(bucket), stream);
}

const std::byte* end_of(const UpdateSlice& slice) {
  const std::size_t bytes = slice.elements * kernels::size_of(slice.copy.dtype);
  return static_cast<const std::byte*>(slice.copy.data) + bytes;
}

bool are_neighbours(const UpdateSlice& a, const UpdateSlice& b) {
  return a.group == b.group && a.matrix < 0 && b.matrix < 0 && a.weights + a.elements == b.weights &&
         a.gradients + a.elements == b.gradients && a.state_offset + a.elements == b.state_offset &&
         (!a.copy.data || end_of(a) == b.copy.data);
}

void add(const UpdateSlice& slice, std::vector<UpdateSlice>& slices) {
  if (!slices.empty() && are_neighbours(slices.back(), slice))
    slices.back().elements += slice.elements;
  else
    slices.push_back(slice);
}

UpdateSlice part_of(const UpdateSlice& whole, const Shards::Slice& slice) {
  UpdateSlice part = whole;
  part.elements = slice.elements;
  part.weights += slice.offset;
  part.gradients += slice.offset;
  part.state_offset += slice.offset;
  if (part.copy.data)
    part.copy.data = static_cast<std::byte*>(part.copy.data) + slice.offset * kernels::size_of(part.copy.dtype);
  return part;
}

}  // namespace

std::unique_ptr<BucketMemory> gather_whole(const WeightParts& parts, const ShardPointers& shards, DType dtype,
                                           kernels::Stream& stream) {
  auto whole = std::make_unique<BucketMemory>(BucketMemorySpec{.dtype = dtype}, parts.group, parts.shards.layout());
  for (int bucket = 0; bucket < parts.shards.layout().buckets(); ++bucket)
    enqueue_gather_bucket(parts, bucket, shards[static_cast<std::size_t>(bucket)], *whole, stream);
  return whole;
}

GatheredWeights::GatheredWeights(const WeightParts& parts, DType dtype)
    : parts_(parts),
      memory_({.dtype = dtype}, parts.group, parts.shards.layout()),
      packed_(parts.device.allocate(rounded() ? parts.shards.elements() * sizeof(float) : 0)),
      view_(weights_within(memory_)),
      master_(rounded() ? packed_shards(parts.shards, packed_.as<float>()) : shards_within(parts.shards, memory_)) {
  view_.frozen = parts.frozen;
  view_.buffers = parts.buffers;
}

const float* GatheredWeights::whole_master() const {
  if (!rounded()) return reinterpret_cast<const float*>(memory_.data(0));
  return parts_.shards.whole() ? packed_.as<float>() : nullptr;
}

RoundedCopy GatheredWeights::copy(int bucket) const {
  if (!rounded()) return {};
  const std::size_t begin = parts_.shards.in_bucket(bucket).offset * kernels::size_of(memory_.dtype());
  return {.dtype = memory_.dtype(), .data = memory_.data(bucket) + begin};
}

void GatheredWeights::enqueue_refresh(kernels::Stream& stream) {
  for (int bucket = 0; rounded() && bucket < parts_.shards.layout().buckets(); ++bucket)
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

PrefetchedWeights::PrefetchedWeights(const WeightParts& parts, DistributedDataParallel& ddp, DType dtype, int slots)
    : parts_(parts),
      ddp_(ddp),
      packed_(parts.device.allocate(parts.shards.elements() * sizeof(float))),
      master_(packed_shards(parts.shards, packed_.as<float>())),
      memory_({.dtype = dtype, .slots = slots}, parts.group, parts.shards.layout()),
      view_(weights_within(memory_)) {
  view_.frozen = parts.frozen;
  view_.buffers = parts.buffers;
  for (int slot = 0; slot < memory_.slots(); ++slot)
    slots_.push_back({.free = parts.device.make_event(), .arrived = parts.device.make_event()});
}

/// Forgets the buckets in the slots: the optimizer may have changed all weights, and a recorded pass must not depend on
/// a bucket that was fetched outside of it.
void PrefetchedWeights::before_forward() {
  for (Slot& slot : slots_) slot.bucket = -1;
  if (!needs_.empty()) last_needs_ = std::exchange(needs_, {});
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

/// Fetches the first missing bucket of the next need, if its slot is not in use. A pass awaits every bucket that it
/// fetches, for a need within it: only a step's last pass ends with a join, and CUDA rejects a capture with unjoined
/// work.
void PrefetchedWeights::fetch_next(const Need& now) {
  if (needs_.size() >= last_needs_.size()) return;
  const Need& next = last_needs_[needs_.size()];
  for (int bucket = next.first; bucket <= next.last; ++bucket) {
    const Slot& slot = slot_of(bucket);
    if (slot.bucket == bucket) continue;
    if (slot.bucket < now.first || slot.bucket > now.last) fetch(bucket);
    return;
  }
}

void PrefetchedWeights::fetch(int bucket) {
  Slot& slot = slot_of(bucket);
  if (slot.bucket == bucket) return;
  slot.bucket = bucket;
  slot.awaited = false;
  ddp_.enqueue_after_compute(*slot.free, [&](kernels::Stream& communication) {
    enqueue_gather_bucket(parts_, bucket, master_[static_cast<std::size_t>(bucket)], memory_, communication);
    communication.record(*slot.arrived);
  });
}

void PrefetchedWeights::await(int bucket) {
  Slot& slot = slot_of(bucket);
  if (!std::exchange(slot.awaited, true)) ddp_.enqueue_wait(*slot.arrived);
}

std::unique_ptr<BucketMemory> PrefetchedWeights::gather_whole(kernels::Stream& stream) {
  return train::gather_whole(parts_, master_, memory_.dtype(), stream);
}

std::vector<UpdateSlice> update_slices(const Shards& shards, const ComputeWeights& weights,
                                       const ShardPointers& gradients, const ParameterRoles& roles) {
  std::vector<UpdateSlice> slices;
  for (int bucket = 0; bucket < shards.layout().buckets(); ++bucket) {
    const auto b = static_cast<std::size_t>(bucket);
    const Shards::Slice packed = shards.packed(bucket);
    const UpdateSlice whole{.weights = weights.master()[b],
                            .gradients = gradients[b],
                            .copy = weights.copy(bucket),
                            .state_offset = packed.offset,
                            .elements = packed.elements};
    for (const auto& [parameter, slice] : shards.parts(bucket)) {
      const auto p = static_cast<std::size_t>(parameter);
      UpdateSlice part = part_of(whole, slice);
      part.group = roles.group[p];
      if (!roles.matrix.empty() && roles.matrix[p] >= 0) {
        const nn::ArenaLayout::Slice in_arena = shards.layout().parameter(parameter);
        const std::size_t begin =
            shards.layout().bucket(bucket).offset + shards.in_bucket(bucket).offset + slice.offset - in_arena.offset;
        const std::size_t inside = std::min(slice.elements, in_arena.elements - std::min(begin, in_arena.elements));
        UpdateSlice of_matrix = part_of(part, {0, inside});
        of_matrix.matrix = roles.matrix[p];
        of_matrix.matrix_offset = begin;
        if (inside > 0) add(of_matrix, slices);
        part = part_of(part, {inside, slice.elements - inside});  // padding
      }
      if (part.elements > 0) add(part, slices);
    }
  }
  return slices;
}

}  // namespace gradring::train
