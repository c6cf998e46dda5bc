// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "kernels/runtime/device.h"
#include "kernels/runtime/memory_counter.h"

namespace gradring::kernels {

/// A device that counts the device memory that is allocated through it, and is the device behind it in all else. Pinned memory, which
/// is the host's, is not counted. Several of them, each with a counter, tell what the memory of one device is for.
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
  std::unique_ptr<Recording> record(Stream& stream, std::function<void()> enqueue_work) override {
    return device_.record(stream, std::move(enqueue_work));
  }

 private:
  class Memory;

  Device& device_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace gradring::kernels
