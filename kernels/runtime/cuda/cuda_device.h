// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <memory>
#include <string>

#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/cuda/cuda_memory.h"
#include "kernels/runtime/device.h"

namespace gradring::kernels {

/// How many CUDA devices this process sees; 0 also where there is no driver, or too old a one.
int cuda_device_count();

/// The result of cudaGetDeviceCount, and the versions that explain it.
struct DeviceCount {
  cudaError_t result = cudaSuccess;
  int devices = 0;
  int driver_version =
      0;  ///< the CUDA that the driver supports, as cudaDriverGetVersion has it: 12040 is 12.4; 0 if none
  int runtime_version = 0;  ///< the CUDA that this program was built with, written likewise
};
DeviceCount count_devices();

/// Why there is no device `index` by this count, and what to do about it. Empty if there is one.
std::string why_no_device(const DeviceCount& count, int index);

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
