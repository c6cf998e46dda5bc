// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "kernels/runtime/device.h"
#include "kernels/simt/engine/executor.h"

namespace gradring::kernels {

/// The CPU as a device. Its streams run kernels on the execution model of kernels/simt, each stream with an executor of
/// its own, so that no two streams, and no two ranks that are threads, ever wait for each other to launch.
class HostDevice final : public Device {
 public:
  static constexpr std::chrono::minutes kPatience{10};

  /// `execution` says how many OS threads run the blocks of a grid and, for tests, in which order threads run. A stream
  /// that waits for another one's event gives up if that one completes no work for `patience`: longer than any of its
  /// work takes, and any deadline of that work, whose error says more.
  explicit HostDevice(simt::ExecutorOptions execution = {}, std::chrono::nanoseconds patience = kPatience);
  ~HostDevice() override;

  std::chrono::nanoseconds patience() const { return patience_; }

  DeviceId id() const override { return {DeviceKind::cpu, 0}; }
  std::string description() const override;
  Buffer allocate(std::size_t bytes, MemoryKind kind) override;
  std::unique_ptr<Stream> make_stream(StreamMode mode) override;
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<Timer> make_timer() override;
  std::unique_ptr<Recording> record(Stream& stream, std::function<void()> enqueue_work) override;

 private:
  simt::ExecutorOptions execution_;
  std::chrono::nanoseconds patience_;
  std::unique_ptr<Buffer::Resource> memory_;
};

}  // namespace gradring::kernels
