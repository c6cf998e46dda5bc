// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/capture.h"

#include <algorithm>
#include <utility>

namespace gradring::simulated_gpu {

Capture::Capture(Stream& origin, cudaStreamCaptureMode mode) : origin_(&origin), mode_(mode) {
  recipe_.device = origin.device;
  recipe_.branches = 1;
  branches_[&origin] = 0;
}

bool Capture::forbids_this_thread() const {
  if (is_global()) return true;
  return mode_ == cudaStreamCaptureModeThreadLocal && thread_ == std::this_thread::get_id();
}

bool Capture::may_end_here() const {
  return mode_ == cudaStreamCaptureModeRelaxed || thread_ == std::this_thread::get_id();
}

void Capture::invalidate(const std::string& why) {
  if (is_valid()) broken_ = why;
}

void Capture::require_valid() const {
  if (!is_valid()) throw Misuse{cudaErrorStreamCaptureInvalidated, "a capture that was invalidated by " + broken_};
}

void Capture::join(Stream& stream, const Event& event) {
  require_valid();
  if (branches_.emplace(&stream, recipe_.branches).second) ++recipe_.branches;
  stream.capture = event.capture;
  for (const std::size_t node : event.frontier)
    if (std::ranges::find(stream.frontier, node) == stream.frontier.end()) stream.frontier.push_back(node);
}

void Capture::leave(Stream& stream) {
  invalidate("the destruction of a stream that was captured");
  branches_.erase(&stream);
  if (origin_ == &stream) origin_ = nullptr;
}

void Capture::add(Stream& stream, StreamWork work) {
  require_valid();
  recipe_.nodes.push_back({.work = std::move(work),
                           .branch = branches_.at(&stream),
                           .after = std::exchange(stream.frontier, {recipe_.nodes.size()})});
}

std::size_t Capture::unjoined() const {
  std::vector<bool> joined(recipe_.nodes.size(), false);
  Frontier pending = origin_->frontier;
  while (!pending.empty()) {
    const std::size_t node = pending.back();
    pending.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    const Frontier& after = recipe_.nodes[node].after;
    pending.insert(pending.end(), after.begin(), after.end());
  }
  return static_cast<std::size_t>(std::ranges::count(joined, false));
}

Recipe Capture::end() {
  ended_ = true;
  const std::size_t left = is_valid() ? unjoined() : 0;
  for (const auto& [stream, branch] : branches_) {
    stream->capture = nullptr;
    stream->frontier.clear();
  }
  require_valid();
  if (left > 0)
    throw Misuse{cudaErrorStreamCaptureUnjoined,
                 std::to_string(left) +
                     " pieces of captured work that the first stream does not wait for: record an event "
                     "behind them, and let the first stream wait for it"};
  return std::move(recipe_);
}

}  // namespace gradring::simulated_gpu
