// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "kernels/runtime/stream.h"
#include "kernels/simt/executor.h"
#include "kernels/simt/launch_queue.h"

namespace gradring::kernels {

/// What both CPU streams share: everything is host work, in order.
class HostStream : public Stream, public simt::LaunchQueue {
 public:
  explicit HostStream(const simt::ExecutorOptions& execution) : executor_(execution) {}

  void enqueue_copy(void* to, const void* from, std::size_t bytes) final;
  void enqueue_zero(void* to, std::size_t bytes) final;
  void record(Event& event) final;
  void enqueue_wait(const Event& event) final;
  unsigned workers() const final { return executor_.workers(); }
  void* native_handle() final { return static_cast<simt::LaunchQueue*>(this); }

 protected:
  simt::Executor executor_;
};

/// Runs work in the caller, before enqueue returns; so an error is thrown where it happens.
class InPlaceStream final : public HostStream {
 public:
  using HostStream::HostStream;
  void enqueue(std::function<void()> work) override { work(); }
  void enqueue_launch(std::function<void(simt::Executor&)> launch) override { launch(executor_); }
  void synchronize(Deadline) override {}
};

/// Owns one worker thread. After an error the rest of the queue is dropped, and the error is thrown by every later call.
/// The destructor finishes what is queued.
class ThreadedStream final : public HostStream {
 public:
  explicit ThreadedStream(const simt::ExecutorOptions& execution);
  ~ThreadedStream() override;
  void enqueue(std::function<void()> work) override;
  void enqueue_launch(std::function<void(simt::Executor&)> launch) override;
  void synchronize(Deadline deadline) override;

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;  // the worker waits for work, synchronize for an empty queue
  std::deque<std::function<void()>> queue_;
  bool busy_ = false;
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread worker_;  // last: it uses all of the above
};

}  // namespace gradring::kernels
