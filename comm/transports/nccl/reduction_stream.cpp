// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/reduction_stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/lib/variant.h"

namespace gradring::comm::nccl {

ReductionStream::ReductionStream(kernels::Device& device, std::span<const kernels::accumulate::Variant> kernels,
                                 std::size_t slot_bytes)
    : device_(device),
      kernels_(kernels),
      slot_bytes_(slot_bytes),
      scratch_(device.allocate(kSlots * slot_bytes)),
      received_(device.make_event()),
      stream_(device.make_stream(kernels::StreamMode::asynchronous)) {
  for (std::size_t i = 0; i < kSlots; ++i)
    slots_.push_back({.scratch = scratch_.data() + i * slot_bytes, .added = device.make_event()});
}

std::byte* ReductionStream::reserve(std::byte* target, std::size_t elements, kernels::DType dtype,
                                    kernels::Stream& stream) {
  Slot& slot = slots_[next_];
  check(slot.state != State::reserved && elements * size_of(dtype) <= slot_bytes_, [&] {
    return fmt::format(
        "too much data to add at once: found {} bytes after {} reserved slots, expected at most {} in each of {} slots",
        elements * size_of(dtype), std::ranges::count(slots_, State::reserved, &Slot::state), slot_bytes_, kSlots);
  });
  next_ = (next_ + 1) % kSlots;
  wait_for(slot, stream);
  slot.state = State::reserved;
  slot.args = {.dtype = dtype, .x = slot.scratch, .y = target, .elements = elements};
  return slot.scratch;
}

void ReductionStream::add_reserved(kernels::Stream& stream) {
  bool ordered = false;  // whether the adding stream waits for the received data
  for (Slot& slot : slots_) {
    if (slot.state != State::reserved) continue;
    if (!ordered) {
      stream.record(*received_);
      stream_->enqueue_wait(*received_);
      ordered = true;
    }
    kernels::pick_variant(kernels_, device_, slot.args.dtype).run(*stream_, slot.args);
    stream_->record(*slot.added);
    slot.state = State::adding;
  }
}

void ReductionStream::wait_for(const std::byte* data, std::size_t bytes, kernels::Stream& stream) {
  for (Slot& slot : slots_) {
    const auto* const target = static_cast<const std::byte*>(slot.args.y);
    if (target < data + bytes && data < target + slot.args.elements * size_of(slot.args.dtype)) wait_for(slot, stream);
  }
}

void ReductionStream::join(kernels::Stream& stream) {
  for (Slot& slot : slots_) wait_for(slot, stream);
}

void ReductionStream::wait_for(Slot& slot, kernels::Stream& stream) {
  if (slot.state != State::adding) return;
  stream.enqueue_wait(*slot.added);
  slot.state = State::free;
}

}  // namespace gradring::comm::nccl
