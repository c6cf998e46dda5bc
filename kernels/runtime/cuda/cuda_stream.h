// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels {

/// A cudaEvent_t without timing, which makes it cheaper to record.
class CudaEvent final : public Event {
 public:
  /// For streams of device `index`.
  CudaEvent(int index, std::shared_ptr<DeviceFailure> failure);

  /// Errors    DeviceError: what went wrong on the device, once the event was recorded.
  bool reached() const override;

  /// Called when a stream has recorded the event.
  void mark_recorded() { recorded_.store(true, std::memory_order_release); }
  cudaEvent_t handle() const { return event_.get(); }

 private:
  int index_;
  CudaHandle<cudaEvent_t, cudaEventDestroy> event_;
  std::shared_ptr<DeviceFailure> failure_;
  std::atomic<bool> recorded_{false};
};

/// The host functions that one stream has still to run. CUDA calls them on a thread of its own, where nothing may throw
/// and nothing may call CUDA, not even to free memory; so an error is kept, and what a function holds is destroyed
/// later, by the thread that enqueues. After a failure of the device, functions are dropped instead of called.
///
/// Threads   one thread enqueues and destroys; CUDA's calls.
class HostWork {
 public:
  /// When it is destroyed, none may be left to run; see abandon.
  explicit HostWork(std::shared_ptr<DeviceFailure> failure) : failure_(std::move(failure)) {}
  HostWork(const HostWork&) = delete;
  HostWork& operator=(const HostWork&) = delete;

  /// Errors    DeviceError if the stream does not take it.
  void enqueue(std::function<void()> function, cudaStream_t stream);

  /// Gives up what CUDA may still call: it is never destroyed. For a stream that hangs or has failed.
  void abandon() noexcept { (void)items_.release(); }

 private:
  struct Item {
    Item(std::function<void()> function_to_call, std::shared_ptr<DeviceFailure> failure_to_note)
        : function(std::move(function_to_call)), failure(std::move(failure_to_note)) {}
    static void CUDART_CB run(void* item) noexcept;

    std::function<void()> function;
    std::shared_ptr<DeviceFailure> failure;
    std::atomic<bool> done{false};
  };
  std::shared_ptr<DeviceFailure> failure_;
  // a deque: CUDA holds addresses of its items
  std::unique_ptr<std::deque<Item>> items_ = std::make_unique<std::deque<Item>>();
};

/// A cudaStream_t that does not wait for the legacy default stream. Asynchronous, whatever mode was asked for. After an
/// error in enqueued work every call throws it; a call that CUDA refuses outright throws and leaves the stream as it
/// was. The destructor waits, within a deadline, until what is enqueued is done.
///
/// While the stream is captured (Graph), enqueue and synchronize are refused: a graph would run the host function again
/// after it is gone, and captured work never gets done.
class CudaStream final : public Stream {
 public:
  /// On device `index`.
  CudaStream(int index, std::shared_ptr<DeviceFailure> failure);
  ~CudaStream() override;

  /// Errors    InvalidArgument while the stream is captured.
  void enqueue(std::function<void()> work) override;
  void enqueue_copy(void* to, const void* from, std::size_t bytes) override;
  void enqueue_zero(void* to, std::size_t bytes) override;
  void record(Event& event) override;
  void enqueue_wait(const Event& event) override;
  /// Errors    InvalidArgument while the stream is captured; DeviceError if the deadline passes first.
  void synchronize(Deadline deadline) override;
  void* native_handle() override { return stream_.get(); }
  int device_index() const override { return index_; }

 private:
  /// What every call does first.
  void begin_call();
  void refuse_if_captured(std::string_view call);

  int index_;
  std::shared_ptr<DeviceFailure> failure_;
  CudaHandle<cudaStream_t, cudaStreamDestroy> stream_;
  HostWork host_work_;
};

/// Whether what is enqueued on `stream`, one of CUDA's, now goes into a graph.
bool is_captured(Stream& stream);

/// Two cudaEvent_t with timing, for streams of device `index`. Resolution is about half a microsecond.
class CudaTimer final : public Timer {
 public:
  explicit CudaTimer(int index);

  void start(Stream& stream) override { record(start_, stream); }
  void stop(Stream& stream) override { record(stop_, stream); }
  /// Errors    DeviceError if the stream has not passed both marks, or work before them failed.
  double seconds() const override;

 private:
  using Mark = CudaHandle<cudaEvent_t, cudaEventDestroy>;

  Mark make_mark() const;
  void record(const Mark& mark, Stream& stream);

  int index_;
  Mark start_;
  Mark stop_;
};

/// Work that was enqueued once, on a stream and on those that it was joined with by events, kept to be launched again
/// and again as one: a CUDA graph. It holds addresses, not memory: every buffer that the work used must outlive it.
/// Move-only.
///
/// What a capture may hold: kernels, copies, clearing, and events between streams, as long as all streams are joined
///           with the first at the end. Not: host work and waiting by the host, which CudaStream refuses; memory that
///           is allocated, or freed by cudaFree; queries of events by the thread that captures, and later by any
///           thread of a captured event.
/// Order     if communicator calls were captured, destroy the graph before the communicators: reset().
/// Threads   one at a time. While one thread captures, others may wait for events and enqueue on their streams.
class Graph {
 public:
  Graph() = default;

  /// Calls `enqueue_work`, which enqueues on `stream`, one of CUDA's; what it enqueues is kept and not run.
  ///
  /// Errors    what `enqueue_work` throws; DeviceError if it enqueued what cannot be captured. The stream is then as it
  ///           was before.
  static Graph capture(Stream& stream, const std::function<void()>& enqueue_work);

  /// Runs the whole once more, in the order of `stream`, which is of the captured one's device.
  ///
  /// Errors    InvalidArgument if nothing was captured; DeviceError if it cannot be launched.
  void enqueue(Stream& stream);

  /// Destroys what was captured. The device finishes enqueued work first; this call does not wait for it.
  void reset() noexcept { executable_.reset(); }

 private:
  int device_index_ = 0;
  CudaHandle<cudaGraphExec_t, cudaGraphExecDestroy> executable_;
};

}  // namespace gradring::kernels
