// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gradring::kernels {

/// What a slice of a trace belongs to. The comments name TraceEvent::numbers.
enum class TraceCategory : std::uint8_t {
  step,      ///< step of the run
  data,      ///< waiting for the loader
  forward,   ///< also a plan within it, with the names of its layers
  backward,  ///< the same
  optimizer,
  wait,        ///< exposed communication: for gradients or weights of other ranks
  sync,        ///< for other ranks on the host, between steps
  bucket,      ///< sum of a bucket of gradients: bucket, bytes, when it was ready (ns)
  collective,  ///< sequence number in the group, bytes
  transfer,    ///< step of a collective: index, bytes sent, receiver, sender (-1: none, -2: several)
  evaluation,
  checkpoint,  ///< step of the run
  fault,       ///< injected
};

/// A slice of a track: something that lasted from `begin` to `end`.
struct TraceEvent {
  TraceCategory category = TraceCategory::step;
  const char* name = "";   ///< lives as long as the track
  std::int64_t begin = 0;  ///< ns of the steady clock
  std::int64_t end = 0;
  std::array<std::int64_t, 4> numbers{};
};

/// One timeline of a trace, in memory that is allocated before. What does not fit is counted.
///
/// Threads   one at a time adds; any may read.
/// Cost      a clock read and a store for each event; while nothing is recorded a load.
class TraceTrack {
 public:
  /// `recording` must outlive it.
  TraceTrack(std::string name, std::size_t capacity, const std::atomic<bool>& recording)
      : name_(std::move(name)), events_(capacity), recording_(recording) {}

  static std::int64_t now() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  const std::string& name() const { return name_; }
  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  void add(const TraceEvent& event) {
    const std::size_t size = size_.load(std::memory_order_relaxed);
    if (size == events_.size()) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    events_[size] = event;
    size_.store(size + 1, std::memory_order_release);
  }

  std::span<const TraceEvent> events() const { return {events_.data(), size_.load(std::memory_order_acquire)}; }
  std::size_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  std::string name_;
  std::vector<TraceEvent> events_;
  const std::atomic<bool>& recording_;
  std::atomic<std::size_t> size_{0};
  std::atomic<std::size_t> dropped_{0};
};

/// Adds its lifetime to a track, if there is one and it is recording.
class TraceScope {
 public:
  TraceScope(TraceTrack* track, TraceCategory category, const char* name, std::array<std::int64_t, 4> numbers = {})
      : track_(track && track->recording() ? track : nullptr),
        event_{.category = category, .name = name, .begin = track_ ? TraceTrack::now() : 0, .numbers = numbers} {}
  ~TraceScope() {
    if (!track_) return;
    event_.end = TraceTrack::now();
    track_->add(event_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceTrack* track_;
  TraceEvent event_;
};

}  // namespace gradring::kernels
