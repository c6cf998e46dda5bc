// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/host/host_stream.h"

#include <cstring>
#include <utility>

#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_event.h"

namespace gradring::kernels {
namespace {

/// A stream that waits longer than this for another stream's event waits for work that will never come.
constexpr std::chrono::minutes kLongestEventWait(10);

}  // namespace

void HostStream::enqueue_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  enqueue([to, from, bytes] { std::memcpy(to, from, bytes); });
}

void HostStream::enqueue_zero(void* to, std::size_t bytes) {
  if (bytes == 0) return;
  enqueue([to, bytes] { std::memset(to, 0, bytes); });
}

void HostStream::record(Event& event) {
  auto& mark = static_cast<HostEvent&>(event);
  const std::uint64_t record = mark.mark_recorded();
  enqueue([&mark, record] { mark.mark_reached(record); });
}

void HostStream::enqueue_wait(const Event& event) {
  const auto& mark = static_cast<const HostEvent&>(event);
  const std::uint64_t record = mark.last_record();
  if (mark.reached(record)) return;
  enqueue([&mark, record] {
    const Deadline deadline = Deadline::after(kLongestEventWait);
    for (int turn = 0; !mark.reached(record); ++turn) {
      check<DeviceError>(!deadline.passed(), "a stream waited 10 minutes for an event that was never reached");
      if (turn > 200) std::this_thread::yield();
    }
  });
}

void ThreadedStream::enqueue_launch(std::function<void(simt::Executor&)> launch) {
  enqueue([this, launch = std::move(launch)] { launch(executor_); });
}

ThreadedStream::ThreadedStream(const simt::ExecutorOptions& execution)
    : HostStream(execution), worker_([this] { serve(); }) {}

ThreadedStream::~ThreadedStream() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void ThreadedStream::enqueue(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void ThreadedStream::synchronize(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const bool done = changed_.wait_for(lock, deadline.remaining(), [this] { return queue_.empty() && !busy_; });
  if (failure_) std::rethrow_exception(failure_);
  if (!done) throw DeviceError("a CPU stream did not finish its work before the deadline");
}

void ThreadedStream::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (failure) {
      failure_ = failure;
      queue_.clear();
    }
    if (queue_.empty()) changed_.notify_all();
  }
}

}  // namespace gradring::kernels
