// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/deadline.h"

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

/// One launch of a kernel, and what it takes of the device.
struct LaunchReport {
  std::string kernel;                    ///< with its template arguments: "relu_forward_flat_kernel<float>"
  std::size_t blocks = 0;                ///< of the grid
  std::size_t threads = 0;               ///< of a block
  std::size_t dynamic_shared_bytes = 0;  ///< of a block, as the launch asked for them

  /// What a compiler gave the kernel, and how much of a multiprocessor that leaves it.
  struct Resources {
    int registers = 0;                    ///< of a thread
    std::size_t local_bytes = 0;          ///< of a thread: what found no register
    std::size_t static_shared_bytes = 0;  ///< of a block
    int resident_warps = 0;               ///< that a multiprocessor holds of this launch at once
    int most_warps = 0;                   ///< that it can hold
  };
  std::optional<Resources> resources{};  ///< of a GPU; none on a CPU
};

/// Receives a report of every kernel launched on a stream: Stream::observe_launches.
class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  /// By the thread that launched, when the launch is enqueued.
  virtual void launched(const LaunchReport& report) = 0;
};

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
  /// The index of its device: 1 of "cuda:1"; 0 of the CPU.
  virtual int device_index() const = 0;

  /// Reports every later launch on this stream to `observer`; null, the default, reports none. Not
  /// during a launch.
  void observe_launches(LaunchObserver* observer) { launch_observer_ = observer; }
  LaunchObserver* launch_observer() const { return launch_observer_; }

 private:
  LaunchObserver* launch_observer_ = nullptr;
};

/// Measures the time between two marks in a stream by the device's own clock: Device::make_timer.
///
/// Threads   one.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual void start(Stream& stream) = 0;
  virtual void stop(Stream& stream) = 0;
  /// Seconds from start to stop; once the host has waited for both.
  virtual double seconds() const = 0;
};

/// Records the launches on a stream during its lifetime, then restores the observer from before.
///
/// Example   tests/kernels/simt/launch_test.cpp
class LaunchLog final : public LaunchObserver {
 public:
  explicit LaunchLog(Stream& stream) : stream_(stream), before_(stream.launch_observer()) {
    stream_.observe_launches(this);
  }
  ~LaunchLog() override { stream_.observe_launches(before_); }
  LaunchLog(const LaunchLog&) = delete;
  LaunchLog& operator=(const LaunchLog&) = delete;

  void launched(const LaunchReport& report) override { launches_.push_back(report); }
  /// In the order in which they were enqueued.
  const std::vector<LaunchReport>& launches() const { return launches_; }

 private:
  Stream& stream_;
  LaunchObserver* before_;
  std::vector<LaunchReport> launches_;
};

}  // namespace gradring::kernels
