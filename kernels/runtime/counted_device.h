// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "kernels/runtime/device.h"

namespace gradring::kernels {

/// How many bytes are allocated now, and how many at most there ever were.
///
/// Threads   any.
class MemoryCounter {
 public:
  void add(std::size_t bytes) noexcept {
    const std::size_t now = now_.fetch_add(bytes) + bytes;
    std::size_t peak = peak_.load();
    while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
    }
  }
  void remove(std::size_t bytes) noexcept { now_.fetch_sub(bytes); }

  std::size_t now_bytes() const { return now_.load(); }
  std::size_t peak_bytes() const { return peak_.load(); }

 private:
  std::atomic<std::size_t> now_ = 0;
  std::atomic<std::size_t> peak_ = 0;
};

/// Counts bytes during its lifetime: for memory that no Device allocates, such as that of a transport.
class CountedBytes {
 public:
  CountedBytes(MemoryCounter& counter, std::size_t bytes) : counter_(&counter), bytes_(bytes) { counter.add(bytes); }
  CountedBytes(CountedBytes&& other) noexcept
      : counter_(std::exchange(other.counter_, nullptr)), bytes_(other.bytes_) {}
  CountedBytes& operator=(CountedBytes&&) = delete;
  ~CountedBytes() {
    if (counter_) counter_->remove(bytes_);
  }

 private:
  MemoryCounter* counter_;
  std::size_t bytes_;
};

/// A device that counts the device memory that is allocated through it, and is the device behind it in all else. Pinned
/// memory, which is the host's, is not counted. Several of them, each with a counter, tell what the memory of one
/// device is for.
///
/// Threads   as the device behind it. `device` and `counter` must outlive this, and this the buffers.
class CountedDevice final : public Device {
 public:
  CountedDevice(Device& device, MemoryCounter& counter);
  ~CountedDevice() override;

  DeviceId id() const override { return device_.id(); }
  std::string description() const override { return device_.description(); }
  Buffer allocate(std::size_t bytes, MemoryKind kind) override;
  std::unique_ptr<Stream> make_stream(StreamMode mode) override { return device_.make_stream(mode); }
  std::unique_ptr<Event> make_event() override { return device_.make_event(); }
  std::unique_ptr<Timer> make_timer() override { return device_.make_timer(); }
  std::unique_ptr<Recording> record(Stream& stream, std::function<void()> enqueue_work) override {
    return device_.record(stream, std::move(enqueue_work));
  }

 private:
  class Memory;

  Device& device_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace gradring::kernels
