// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/runtime/device.h"

namespace gradring::kernels {

/// A device without memory, which does no work: what is built on it shows what it would allocate on the device that
/// this one pretends to be. Its device memory is addresses alone, never to be read or written; pinned memory is real.
/// Copies and host work on its streams are dropped, every event counts as reached, and all work takes 0 seconds.
///
/// Threads   any.
/// Errors    InvalidArgument if a kernel is to be launched on its streams.
class DryRunDevice final : public Device {
 public:
  /// `device` lends its name, and must outlive this.
  explicit DryRunDevice(const Device& device);
  ~DryRunDevice() override;

  DeviceId id() const override { return device_.id(); }
  std::string description() const override { return device_.description(); }
  Buffer allocate(std::size_t bytes, MemoryKind kind) override;
  std::unique_ptr<Stream> make_stream(StreamMode mode) override;
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<Timer> make_timer() override;
  std::unique_ptr<Recording> record(Stream& stream, std::function<void()> enqueue_work) override;

 private:
  const Device& device_;
  std::unique_ptr<Buffer::Resource> pinned_;
  std::unique_ptr<Buffer::Resource> nothing_;
  std::atomic<std::uintptr_t> next_address_;
};

}  // namespace gradring::kernels
