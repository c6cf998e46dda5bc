// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "kernels/runtime/cuda/device_failure.h"
#include "kernels/runtime/cuda/device_pool.h"
#include "kernels/runtime/cuda/pinned_memory.h"
#include "kernels/runtime/device.h"

namespace gradring::kernels {

/// One NVIDIA GPU, by the index that CUDA gives it in this process. Several may be open at once. The device fails as a
/// whole: after an error in enqueued work, every stream and every recorded event of it throws that error.
class CudaDevice final : public Device {
 public:
  /// Errors    DeviceError if there is no such device, or no driver, or too old a one: says what to do.
  explicit CudaDevice(int index);

  DeviceId id() const override { return {DeviceKind::cuda, index_}; }
  /// "NVIDIA H200, 139.8 GiB, sm_90"
  std::string description() const override;
  /// "0000:18:00.0": what tells it from all other GPUs of its host.
  std::string bus_id() const;
  Buffer allocate(std::size_t bytes, MemoryKind kind) override;
  std::unique_ptr<Stream> make_stream(StreamMode mode) override;
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<Recording> record(Stream& stream, std::function<void()> enqueue_work) override;

 private:
  int index_;
  std::shared_ptr<DeviceFailure> failure_ = std::make_shared<DeviceFailure>();
  DevicePool pool_;
  PinnedMemory pinned_;
};

}  // namespace gradring::kernels
