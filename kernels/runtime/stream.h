// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

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

class LaunchObserver;

/// A queue of work that runs in order: a cudaStream_t on a GPU; on the CPU either in place (work runs before enqueue
/// returns) or on a worker thread of its own. Work of two streams is ordered only through events.
///
/// Threads   one thread enqueues at a time; different streams are independent.
/// Errors    what goes wrong in enqueued work is thrown by the next call on the stream, at the latest by synchronize.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Runs `work` on the host when everything enqueued before it is done. `work` must not call this stream.
  virtual void enqueue(std::function<void()> work) = 0;
  /// Copies `bytes` bytes between any two addresses that the device can reach (device or pinned memory).
  virtual void enqueue_copy(void* to, const void* from, std::size_t bytes) = 0;
  /// Sets `bytes` bytes to zero.
  virtual void enqueue_zero(void* to, std::size_t bytes) = 0;
  /// Marks this point in the stream.
  virtual void record(Event& event) = 0;
  /// Work enqueued from now on starts only when `event` is reached. The host does not wait.
  virtual void enqueue_wait(const Event& event) = 0;
  /// Blocks the host until all enqueued work is done.
  virtual void synchronize(Deadline deadline) = 0;
  /// What kernel launches need: a cudaStream_t, or a simt::LaunchQueue*.
  virtual void* native_handle() = 0;

  /// Reports every later launch on this stream to `observer` (launch_report.h); null, the default, reports none. Not
  /// during a launch.
  void observe_launches(LaunchObserver* observer) { launch_observer_ = observer; }
  LaunchObserver* launch_observer() const { return launch_observer_; }

 private:
  LaunchObserver* launch_observer_ = nullptr;
};

}  // namespace gradring::kernels
