// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "kernels/runtime/host/host_event.h"
#include "kernels/runtime/host/host_stream.h"

namespace gradring::kernels {

/// Owns one worker thread that runs the queue. After an error the rest of the queue is dropped, the events in it carry
/// the error to those who wait for them, and every later call throws it. The destructor finishes what is queued.
class ThreadedStream final : public HostStream {
 public:
  explicit ThreadedStream(const simt::ExecutorOptions& execution);
  ~ThreadedStream() override;
  void enqueue(std::function<void()> work) override;
  void enqueue_launch(std::function<void(simt::Executor&)> launch) override;
  void record(Event& event) override;
  void synchronize(Deadline deadline) override;

 private:
  /// Work, or the mark of an event.
  struct Item {
    std::function<void()> work;
    HostEvent* event = nullptr;
    std::uint64_t record = 0;
  };
  void push(Item item);
  void serve();
  static std::exception_ptr run(const Item& item);
  void drop_queue(const std::exception_ptr& failure);

  std::mutex mutex_;
  std::condition_variable changed_;  // the worker waits for work, synchronize for an empty queue
  std::deque<Item> queue_;
  bool busy_ = false;
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread worker_;  // last: it uses all of the above
};

}  // namespace gradring::kernels
