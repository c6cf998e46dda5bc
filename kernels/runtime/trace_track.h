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
  loader,      ///< a loader's thread prepares a batch: samples
  kernel,      ///< on a GPU: blocks, threads of a block, registers of a thread, graph (0: in none)
  memcpy,      ///< on a GPU: bytes, graph
  memset,      ///< on a GPU: bytes, graph
  note,        ///< about the trace itself; its name is the text
};

/// As trace files and profilers call it.
constexpr const char* name_of(TraceCategory category) {
  constexpr std::array kNames = {"step",  "data",   "forward",    "backward", "optimizer",  "wait",
                                 "sync",  "bucket", "collective", "transfer", "evaluation", "checkpoint",
                                 "fault", "loader", "kernel",     "memcpy",   "memset",     "note"};
  static_assert(kNames.size() == static_cast<std::size_t>(TraceCategory::note) + 1);
  return kNames[static_cast<std::size_t>(category)];
}

/// Shows ranges of the calling thread to a profiler.
///
/// Threads   any; ranges of a thread nest.
class TraceRanges {
 public:
  virtual ~TraceRanges() = default;
  /// `number`: of a step, bucket or collective. Copies `name`.
  virtual void push(TraceCategory category, const char* name, std::int64_t number) = 0;
  virtual void pop() = 0;
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
  /// Also shows what is recorded here, and what would be while nothing is recorded, to a profiler: TraceScope and
  /// TraceRange do. Null: no longer. It must outlive the track's use.
  void show(TraceRanges* ranges) { ranges_ = ranges; }
  TraceRanges* ranges() const { return ranges_; }
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
  TraceRanges* ranges_ = nullptr;
  std::atomic<std::size_t> size_{0};
  std::atomic<std::size_t> dropped_{0};
};

/// Shows its lifetime to the profiler of a track, if there is one.
class TraceRange {
 public:
  TraceRange(const TraceTrack* track, TraceCategory category, const char* name, std::int64_t number = 0)
      : ranges_(track ? track->ranges() : nullptr) {
    if (ranges_) ranges_->push(category, name, number);
  }
  ~TraceRange() {
    if (ranges_) ranges_->pop();
  }
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;

 private:
  TraceRanges* ranges_;
};

/// Adds its lifetime to a track, if there is one and it is recording; also a TraceRange.
class TraceScope {
 public:
  TraceScope(TraceTrack* track, TraceCategory category, const char* name, std::array<std::int64_t, 4> numbers = {})
      : range_(track, category, name, numbers[0]),
        track_(track && track->recording() ? track : nullptr),
        event_{.category = category, .name = name, .begin = track_ ? TraceTrack::now() : 0, .numbers = numbers} {}
  ~TraceScope() {
    if (!track_) return;
    event_.end = TraceTrack::now();
    track_->add(event_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceRange range_;
  TraceTrack* track_;
  TraceEvent event_;
};

}  // namespace gradring::kernels
