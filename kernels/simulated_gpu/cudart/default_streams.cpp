// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/default_streams.h"

#include <algorithm>
#include <array>
#include <vector>

namespace gradring::simulated_gpu {

Stream& DefaultStreams::at(cudaStream_t handle, int device, Scheduler& scheduler) {
  const auto made = [&](auto& streams, auto key, Stream::Kind kind) -> Stream& {
    const auto found = streams.find(key);
    if (found != streams.end()) return found->second;
    return streams.emplace(key, Stream{.device = device, .lane = scheduler.new_lanes(1), .kind = kind}).first->second;
  };
  if (handle != cudaStreamPerThread) return made(legacy_, device, Stream::Kind::legacy);
  return made(per_thread_, std::pair(std::this_thread::get_id(), device), Stream::Kind::blocking);
}

void DefaultStreams::order_legacy(Stream& legacy, Handles<Stream, cudaStream_t>& created, Scheduler& scheduler) {
  std::vector<Scheduler::WorkPtr> before;
  const auto add = [&](Stream& stream) {
    if (stream.kind != Stream::Kind::blocking || stream.device != legacy.device) return;
    if (stream.capture) {
      stream.capture->invalidate("work of the legacy default stream, which would wait for a captured stream");
      throw Misuse{cudaErrorStreamCaptureImplicit, "the legacy default stream, while a blocking stream is captured"};
    }
    if (!stream.tail || stream.tail == stream.seen_by_legacy) return;
    stream.seen_by_legacy = stream.tail;
    before.push_back(stream.tail);
  };
  for (auto& [number, stream] : created.all()) add(stream);
  for (auto& [key, stream] : per_thread_) add(stream);
  if (const auto left = left_.extract(legacy.device)) before.push_back(left.mapped());
  if (before.empty()) return;
  before.push_back(legacy.tail);
  legacy.tail = scheduler.enqueue({.run = {}, .lane = legacy.lane}, before);
}

void DefaultStreams::leave(Stream& stream, Scheduler& scheduler) {
  if (stream.kind != Stream::Kind::blocking || !stream.tail) return;
  Scheduler::WorkPtr& left = left_[stream.device];
  const std::array<Scheduler::WorkPtr, 2> both = {stream.tail, left};
  left = left ? scheduler.enqueue({.run = {}, .lane = stream.lane}, both) : stream.tail;
}

bool DefaultStreams::waits_for_capture(const Stream& legacy, const Handles<Stream, cudaStream_t>& created) const {
  const auto is_captured = [&](const auto& entry) {
    const Stream& stream = entry.second;
    return stream.kind == Stream::Kind::blocking && stream.device == legacy.device && stream.capture;
  };
  return std::ranges::any_of(created.all(), is_captured) || std::ranges::any_of(per_thread_, is_captured);
}

void DefaultStreams::order(Stream& stream, Handles<Stream, cudaStream_t>& created, Scheduler& scheduler) {
  if (stream.kind == Stream::Kind::legacy) return order_legacy(stream, created, scheduler);
  if (stream.kind == Stream::Kind::non_blocking || stream.capture) return;
  const auto legacy = legacy_.find(stream.device);
  if (legacy == legacy_.end() || !legacy->second.tail || legacy->second.tail == stream.seen_of_legacy) return;
  stream.seen_of_legacy = legacy->second.tail;
  const std::array<Scheduler::WorkPtr, 2> both = {stream.tail, legacy->second.tail};
  stream.tail = scheduler.enqueue({.run = {}, .lane = stream.lane}, both);
}

}  // namespace gradring::simulated_gpu
