// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/timed_calls.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "kernels/base/error.h"

namespace gradring::kernels {

TimedCalls::TimedCalls(Device& device, Stream& stream, const std::function<void()>& enqueue_call, int calls)
    : stream_(stream),
      calls_(calls),
      timer_(device.make_timer()),
      recording_(device.record(stream, [enqueue_call, calls] {
        for (int call = 0; call < calls; ++call) enqueue_call();
      })) {}

double TimedCalls::seconds(Deadline deadline) {
  return seconds_after([this] { recording_->enqueue(stream_); }, deadline);
}

double TimedCalls::seconds_after(const std::function<void()>& enqueue_before, Deadline deadline) {
  enqueue_before();
  timer_->start(stream_);
  recording_->enqueue(stream_);
  timer_->stop(stream_);
  stream_.synchronize(deadline);
  return timer_->seconds() / calls_;
}

double least_seconds(Device& device, Stream& stream, const std::function<void()>& enqueue_call) {
  constexpr int kRuns = 5;
  constexpr int kCallsOfRun = 16;
  constexpr auto kTimeout = std::chrono::seconds(30);
  double least = std::numeric_limits<double>::infinity();
  try {
    enqueue_call();
    TimedCalls timed(device, stream, enqueue_call, kCallsOfRun);
    for (int run = 0; run < kRuns; ++run) least = std::min(least, timed.seconds(Deadline::after(kTimeout)));
  } catch (const DeviceError&) {
    stream.synchronize(Deadline::after(kTimeout));  // throws if it is the device that failed
  }
  return least;
}

}  // namespace gradring::kernels
