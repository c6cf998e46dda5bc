// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "kernels/base/deadline.h"
#include "kernels/runtime/device.h"

namespace gradring::kernels {

/// Times a call by the device's clock, as it runs among other work. Enqueueing a kernel takes the host longer than many
/// kernels run. Hence the calls are recorded and replayed as one (on a GPU a CUDA graph), and the device is given other
/// work first, during which the host enqueues both marks and what is between them.
///
/// Threads   one.
class TimedCalls {
 public:
  /// Records `calls` calls of `enqueue_call`, which enqueues on `stream` and has run once before. `device` and `stream`
  /// must outlive this.
  ///
  /// Errors    as Device::record.
  TimedCalls(Device& device, Stream& stream, const std::function<void()>& enqueue_call, int calls);

  /// Seconds a call, its data and code in cache as far as they fit: the calls are run before, too. Waits.
  ///
  /// Errors    DeviceError if the deadline passes first, or the work fails.
  double seconds(Deadline deadline);
  /// The same straight after other work: `enqueue_before` enqueues some 20 microseconds of it or more on the stream.
  double seconds_after(const std::function<void()>& enqueue_before, Deadline deadline);

 private:
  Stream& stream_;
  int calls_;
  std::unique_ptr<Timer> timer_;
  std::unique_ptr<Recording> recording_;
};

/// Seconds of one call of `enqueue_call` on the device: the least of several measurements after a first call. Infinite
/// if the calls cannot be run or recorded. Waits.
///
/// Errors    DeviceError if it is the device that fails, and not the call.
double least_seconds(Device& device, Stream& stream, const std::function<void()>& enqueue_call);

}  // namespace gradring::kernels
