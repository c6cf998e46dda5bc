// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/timed_calls.h"

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

}  // namespace gradring::kernels
