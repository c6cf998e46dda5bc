// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/host/threaded_stream.h"

#include <utility>

#include "kernels/runtime/error.h"

namespace gradring::kernels {

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

void ThreadedStream::enqueue(std::function<void()> work) { push({.work = std::move(work)}); }

void ThreadedStream::enqueue_launch(std::function<void(simt::Executor&)> launch) {
  push({.work = [this, launch = std::move(launch)] { launch(executor_); }});
}

void ThreadedStream::record(Event& event) { push({.work = {}, .event = static_cast<HostEvent*>(&event)}); }

void ThreadedStream::push(Item item) {
  {
    std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (item.event) item.record = item.event->mark_recorded();  // not before it is sure to be queued
    queue_.push_back(std::move(item));
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
    const Item item = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    const std::exception_ptr failure = run(item);
    lock.lock();
    busy_ = false;
    if (failure) drop_queue(failure);
    if (queue_.empty()) changed_.notify_all();
  }
}

std::exception_ptr ThreadedStream::run(const Item& item) {
  try {
    if (item.event)
      item.event->mark_reached(item.record);
    else
      item.work();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

void ThreadedStream::drop_queue(const std::exception_ptr& failure) {
  failure_ = failure;
  for (const Item& item : queue_)
    if (item.event) item.event->mark_failed(failure);
  queue_.clear();
}

}  // namespace gradring::kernels
