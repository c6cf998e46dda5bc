// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/gpu_activities.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include "kernels/base/printable.h"

namespace gradring::kernels {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

/// More than NTP changes the speed of a clock (500 ppm), and less than a step of it in a short trace.
constexpr double kMostDrift = 1e-3;

/// From CUPTI's clock to the host's.
class Clock {
 public:
  Clock(const ClockPair& first, const ClockPair& last) : first_(first) {
    const auto host = static_cast<double>(last.host - first.host);
    const double device = since_first(last.device);
    const double uncertain = static_cast<double>(first.accuracy + last.accuracy);
    runs_backward_ = device <= 0;
    if (!runs_backward_) speed_ = host / device;
    differs_ = runs_backward_ || std::abs(device - host) > kMostDrift * host + uncertain;
    difference_ = device - host;
  }

  std::int64_t to_host(std::uint64_t time) const { return first_.host + std::llround(speed_ * since_first(time)); }
  bool differs() const { return differs_; }
  /// By how much it went further than the host's during the trace, in ms.
  double difference_ms() const { return difference_ / kMillisecond; }

 private:
  double since_first(std::uint64_t time) const {
    return static_cast<double>(static_cast<std::int64_t>(time - first_.device));
  }

  ClockPair first_;
  double speed_ = 1;
  double difference_ = 0;
  bool runs_backward_ = false;
  bool differs_ = false;
};

std::string counted(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

void add_note(std::vector<std::string>& notes, std::size_t count, const std::string& why) {
  if (count > 0)
    notes.push_back(counted(count, "GPU activity was dropped", "GPU activities were dropped") + ": " + why);
}

std::string one_decimal(double value) {
  const std::string text = std::to_string(std::round(value * 10) / 10);
  return text.substr(0, text.find('.') + 2);
}

/// The tracks of one stream: an event is on the first that is free.
class StreamTracks {
 public:
  explicit StreamTracks(std::string name) : name_(std::move(name)) {}

  void add(const TraceEvent& event) {
    auto track = std::ranges::find_if(tracks_, [&](const auto& each) { return each.events.back().end <= event.begin; });
    if (track == tracks_.end()) {
      const std::string number = tracks_.empty() ? "" : " (" + std::to_string(tracks_.size() + 1) + ")";
      tracks_.push_back({.name = name_ + number});
      track = tracks_.end() - 1;
    }
    track->events.push_back(event);
  }
  void move_to(std::vector<DeviceActivities::Track>& all) { std::ranges::move(tracks_, std::back_inserter(all)); }

 private:
  std::string name_;
  std::vector<DeviceActivities::Track> tracks_;
};

}  // namespace

DeviceActivities to_tracks(const GpuRecords& records, const ClockPair& first, const ClockPair& last) {
  const Clock clock(first, last);
  DeviceActivities found;
  std::vector<std::pair<const GpuActivity*, TraceEvent>> sorted;
  std::size_t without_times = 0, outside = 0;
  for (const GpuActivity& activity : records.activities) {
    if (activity.begin == 0 || activity.end < activity.begin) {
      ++without_times;
      continue;
    }
    const std::int64_t begin = clock.to_host(activity.begin), end = clock.to_host(activity.end);
    if (begin < first.host - kMillisecond || end > last.host + kMillisecond) {
      ++outside;
      continue;
    }
    sorted.emplace_back(&activity, TraceEvent{.category = activity.category,
                                              .name = found.names.insert(demangled(activity.name)).first->c_str(),
                                              .begin = begin,
                                              .end = end,
                                              .numbers = activity.numbers});
  }
  std::ranges::sort(sorted, {}, [](const auto& each) {
    return std::tuple(each.first->device, each.first->stream, each.second.begin, each.second.end);
  });
  for (auto at = sorted.begin(); at != sorted.end();) {
    const std::uint32_t device = at->first->device, stream = at->first->stream;
    StreamTracks tracks("GPU " + std::to_string(device) + " stream " + std::to_string(stream));
    for (; at != sorted.end() && at->first->device == device && at->first->stream == stream; ++at)
      tracks.add(at->second);
    tracks.move_to(found.tracks);
  }
  add_note(found.notes, records.dropped, "CUPTI had no room for them");
  add_note(found.notes, records.without_room, "a trace has no room for more; record fewer steps (--trace-steps)");
  add_note(found.notes, without_times, "CUPTI does not know their times");
  add_note(found.notes, outside, "their times lie outside of the recorded steps");
  if (records.lost_buffers > 0)
    found.notes.push_back(counted(records.lost_buffers, "buffer", "buffers") +
                          " of GPU activities did not come back from CUPTI: what they hold is missing");
  if (records.unreadable_buffers > 0)
    found.notes.push_back(counted(records.unreadable_buffers, "buffer", "buffers") +
                          " of GPU activities could not be read to the end: activities are missing");
  if (clock.differs())
    found.notes.push_back("CUPTI's clock went " + one_decimal(clock.difference_ms()) +
                          " ms further than the host's during the trace: times of GPU activities are wrong");
  return found;
}

}  // namespace gradring::kernels
