// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/host_device.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "kernels/base/processors.h"
#include "kernels/runtime/cpu_level.h"
#include "kernels/runtime/stream.h"
#include "kernels/simt/engine/executor.h"

namespace gradring::kernels {

/// How many items of work a stream has completed. Events, which may outlive their stream, share it.
using Completed = std::shared_ptr<std::atomic<std::uint64_t>>;

/// Two counters: how often the event was recorded, and up to which record its stream has come. If the stream fails
/// before it gets there, every query of the event throws the stream's error: otherwise it would wait for its
/// deadline and never learn the cause.
class HostEvent final : public Event {
 public:
  /// A thread that saw it reached may destroy it while the stream still wakes the waiters.
  ~HostEvent() override { const std::lock_guard lock(mutex_); }

  /// Errors    the error of the stream that recorded it, if that failed first.
  bool reached() const override { return reached(last_record()); }

  /// Notes one more record, by a stream that counts its work in `completed`. Returns the record's number, which the
  /// stream passes to mark_reached when it gets there.
  std::uint64_t mark_recorded(const Completed& completed) {
    std::lock_guard lock(mutex_);
    completed_ = completed;
    return recorded_.fetch_add(1, std::memory_order_acq_rel) + 1;
  }
  void mark_reached(std::uint64_t record) {
    std::lock_guard lock(mutex_);
    reached_.store(record, std::memory_order_release);
    changed_.notify_all();  // wakes streams in wait
  }
  void mark_failed(std::exception_ptr failure) {
    std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    failed_.store(true, std::memory_order_release);
    changed_.notify_all();
  }

  /// The newest record; a stream that waits for the event waits for this one, not for later ones.
  std::uint64_t last_record() const { return recorded_.load(std::memory_order_acquire); }
  bool reached(std::uint64_t record) const {
    if (reached_.load(std::memory_order_acquire) >= record) return true;
    if (failed_.load(std::memory_order_acquire)) rethrow();
    return false;
  }

  /// Blocks until the record is reached: spins briefly, since most waits are short, then sleeps.
  ///
  /// Returns   false if its stream completed no work for `patience`, and up to twice that.
  /// Errors    as reached.
  bool wait(std::uint64_t record, std::chrono::nanoseconds patience) const {
    constexpr int kLooks = 200;
    for (int look = 0; look < kLooks; ++look)
      if (reached(record)) return true;
    std::unique_lock lock(mutex_);
    const auto settled = [&] {
      return reached_.load(std::memory_order_acquire) >= record || failed_.load(std::memory_order_acquire);
    };
    for (std::uint64_t before = completed(); !wait_until(changed_, lock, Deadline::after(patience), settled);)
      if (std::exchange(before, completed()) == before) break;
    lock.unlock();
    return reached(record);
  }

 private:
  std::uint64_t completed() const { return completed_ ? completed_->load(std::memory_order_relaxed) : 0; }
  [[noreturn]] void rethrow() const {
    std::lock_guard lock(mutex_);
    std::rethrow_exception(failure_);
  }

  std::atomic<std::uint64_t> recorded_{0};
  std::atomic<std::uint64_t> reached_{0};
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::exception_ptr failure_;
  Completed completed_;  // of the stream that recorded it last
};

/// What both CPU streams share: everything is host work, in order.
class HostStream : public Stream, public simt::LaunchQueue {
 public:
  HostStream(const simt::ExecutorOptions& execution, std::chrono::nanoseconds patience)
      : executor_(execution), patience_(patience) {}

  void enqueue_copy(void* to, const void* from, std::size_t bytes) final;
  void enqueue_zero(void* to, std::size_t bytes) final;
  void enqueue_wait(const Event& event) final;
  unsigned workers() const final { return executor_.workers(); }
  void* native_handle() final { return static_cast<simt::LaunchQueue*>(this); }
  int device_index() const final { return 0; }

 protected:
  simt::Executor executor_;

 private:
  std::chrono::nanoseconds patience_;
};

/// Runs work in the caller, before enqueue returns; so an error is thrown where it happens, and there is nothing to
/// synchronize. enqueue_wait blocks the caller.
class InPlaceStream final : public HostStream {
 public:
  using HostStream::HostStream;
  void enqueue(std::function<void()> work) override { work(); }
  void enqueue_launch(std::function<void(simt::Executor&)> launch) override { launch(executor_); }
  void record(Event& event) override {
    auto& mark = static_cast<HostEvent&>(event);
    mark.mark_reached(mark.mark_recorded(nullptr));
  }
  void synchronize(Deadline) override {}
};

/// Owns one worker thread that runs the queue. After an error the rest of the queue is dropped, the events in it carry
/// the error to those who wait for them, and every later call throws it. The destructor finishes what is queued.
class ThreadedStream final : public HostStream {
 public:
  ThreadedStream(const simt::ExecutorOptions& execution, std::chrono::nanoseconds patience);
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
  const Completed completed_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::thread worker_;  // last: it uses all of the above
};

void HostStream::enqueue_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  enqueue([to, from, bytes] { std::memcpy(to, from, bytes); });
}

void HostStream::enqueue_zero(void* to, std::size_t bytes) {
  if (bytes == 0) return;
  enqueue([to, bytes] { std::memset(to, 0, bytes); });
}

void HostStream::enqueue_wait(const Event& event) {
  const auto& mark = static_cast<const HostEvent&>(event);
  const std::uint64_t record = mark.last_record();
  enqueue([&mark, record, patience = patience_] {
    check<DeviceError>(mark.wait(record, patience), [&] {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience).count();
      return "a CPU stream waited for an event of another one, which completed no work for " + std::to_string(seconds) +
             " s: raise the timeout if its work takes longer";
    });
  });
}

ThreadedStream::ThreadedStream(const simt::ExecutorOptions& execution, std::chrono::nanoseconds patience)
    : HostStream(execution, patience), worker_([this] { serve(); }) {}

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
    if (item.event) item.record = item.event->mark_recorded(completed_);  // not before it is sure to be queued
    queue_.push_back(std::move(item));
  }
  changed_.notify_all();
}

void ThreadedStream::synchronize(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const bool done = wait_until(changed_, lock, deadline, [this] { return queue_.empty() && !busy_; });
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
    completed_->fetch_add(1, std::memory_order_relaxed);
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

namespace {

/// Reads the clock in the stream, between the work before and after.
class HostTimer final : public Timer {
 public:
  void start(Stream& stream) override {
    stream.enqueue([marks = marks_] { marks->start = Clock::now(); });
  }
  void stop(Stream& stream) override {
    stream.enqueue([marks = marks_] { marks->stop = Clock::now(); });
  }
  double seconds() const override { return std::chrono::duration<double>(marks_->stop - marks_->start).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Marks {
    Clock::time_point start;
    Clock::time_point stop;
  };
  std::shared_ptr<Marks> marks_ = std::make_shared<Marks>();  // shared with enqueued work, which may outlive the timer
};

/// A cache line, an AVX-512 register, and enough for every vector type of CUDA.
constexpr std::align_val_t kAlignment{64};

class HostMemory final : public Buffer::Resource {
 public:
  void release(void* data, std::size_t) noexcept override { ::operator delete(data, kAlignment); }
};

class CalledAgain final : public Recording {
 public:
  explicit CalledAgain(std::function<void()> enqueue_work) : enqueue_work_(std::move(enqueue_work)) {}
  void enqueue(Stream&) override { enqueue_work_(); }

 private:
  std::function<void()> enqueue_work_;
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

}  // namespace

HostDevice::HostDevice(simt::ExecutorOptions execution, std::chrono::nanoseconds patience)
    : execution_(execution), patience_(patience), memory_(std::make_unique<HostMemory>()) {}

HostDevice::~HostDevice() = default;

std::string HostDevice::description() const {
  return processor_name() + ", " + std::to_string(usable_processors()) + " threads, " +
         std::string(cpu_level_name(cpu_level())) + " code";
}

Buffer HostDevice::allocate(std::size_t bytes, MemoryKind) {
  if (bytes == 0) return {};
  void* data = ::operator new(bytes, kAlignment, std::nothrow);
  if (!data)
    throw DeviceError("cannot allocate " + std::to_string(bytes) +
                      " bytes on the CPU: out of memory; lower the batch size");
  return Buffer(data, bytes, *memory_);
}

std::unique_ptr<Stream> HostDevice::make_stream(StreamMode mode) {
  if (mode == StreamMode::in_place) return std::make_unique<InPlaceStream>(execution_, patience_);
  return std::make_unique<ThreadedStream>(execution_, patience_);
}

std::unique_ptr<Event> HostDevice::make_event() { return std::make_unique<HostEvent>(); }

std::unique_ptr<Timer> HostDevice::make_timer() { return std::make_unique<HostTimer>(); }

std::unique_ptr<Recording> HostDevice::record(Stream&, std::function<void()> enqueue_work) {
  return std::make_unique<CalledAgain>(std::move(enqueue_work));
}

}  // namespace gradring::kernels
