// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/deadline.h"

namespace gradring::kernels {

/// A mark in a stream. Made by Device::make_event, set by Stream::record, and then reached when all work that was
/// enqueued on that stream before the mark is done. A new event, never recorded, counts as reached.
///
/// Threads   reached() may be called from any thread; recording the same event from two streams at once is a mistake.
class Event {
 public:
  virtual ~Event() = default;
  /// Polls, never blocks.
  virtual bool reached() const = 0;
};

/// Blocks the host until `event` is reached, by polling (first spinning, then sleeping).
///
/// Errors    DeviceError if the deadline passes first.
void wait(const Event& event, Deadline deadline);

}  // namespace gradring::kernels
