// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels {

/// A device's memory, from a pool of CUDA's that keeps what was freed. Blocks are taken and given back on a stream that
/// does nothing else. So neither waits for work: cudaFree would wait for the whole device, without a deadline, and
/// would break a capture. In return, whoever frees a block must know that no enqueued work uses it any more, as on the
/// CPU.
///
/// Threads   any.
class DevicePool final : public Buffer::Resource {
 public:
  /// Errors    DeviceError if device `index` has no memory pools.
  explicit DevicePool(int index);
  ~DevicePool() override;

  /// Any stream may use the block at once; contents undefined, aligned to 256 bytes.
  ///
  /// Errors    DeviceError if the memory is not available.
  Buffer allocate(std::size_t bytes);
  void release(void* data, std::size_t bytes) noexcept override;

 private:
  /// What is free on the device, and in the pool.
  std::size_t free_bytes(std::size_t& total) const;

  int index_;
  CudaHandle<cudaMemPool_t, cudaMemPoolDestroy> pool_;
  CudaHandle<cudaStream_t, cudaStreamDestroy> stream_;
};

/// Host memory that stays where it is, so that every device of the process copies from and to it without a detour. Slow
/// to get: keep it. cudaFreeHost may wait for the device, without a deadline; so what is freed waits for the next
/// request, and is given back with the device, unless that failed or hangs.
///
/// Threads   any.
class PinnedMemory final : public Buffer::Resource {
 public:
  /// For device `index`, though others reach it too.
  PinnedMemory(int index, std::shared_ptr<const DeviceFailure> failure) : index_(index), failure_(std::move(failure)) {}
  ~PinnedMemory() override;

  /// Errors    DeviceError if the memory is not available.
  Buffer allocate(std::size_t bytes);
  void release(void* data, std::size_t bytes) noexcept override;

 private:
  struct Block {
    void* data = nullptr;
    std::size_t bytes = 0;
    bool used = false;
  };
  /// The smallest unused block with room for `bytes` that is not far too large; null if no block fits.
  Block* unused(std::size_t bytes);

  int index_;
  std::shared_ptr<const DeviceFailure> failure_;
  std::mutex mutex_;  // not held while CUDA allocates, which takes milliseconds
  std::list<Block> blocks_;
};

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
  std::unique_ptr<Timer> make_timer() override;
  std::unique_ptr<Recording> record(Stream& stream, std::function<void()> enqueue_work) override;

 private:
  int index_;
  std::shared_ptr<DeviceFailure> failure_ = std::make_shared<DeviceFailure>();
  DevicePool pool_;
  PinnedMemory pinned_;
};

/// The dynamic shared memory that blocks of one kernel may have, on each device. Without asking, a block has 48 KB,
/// static and dynamic together. The limit is only ever raised, and CUDA is called only for that.
///
/// Threads   any: a launch with less does not take away what another thread's launch needs.
class SharedMemoryLimit {
 public:
  explicit SharedMemoryLimit(const void* kernel) : kernel_(kernel) {}

  /// Lets blocks have `dynamic_bytes` on `device`, which is current.
  ///
  /// Errors    DeviceError if CUDA does not know the kernel, or the device has less.
  void raise_to(std::size_t dynamic_bytes, int device);

 private:
  const void* kernel_;
  std::mutex mutex_;
  std::map<int, std::size_t> allowed_;  // dynamic bytes that are known to be allowed, by device
};

/// What nvcc gave a kernel, and how many warps of such a launch the current device's multiprocessors hold. `kernel` is
/// the address of a __global__ function of this module.
///
/// Errors    DeviceError if CUDA does not know it.
LaunchReport::Resources launch_resources(const void* kernel, std::size_t threads, std::size_t dynamic_shared_bytes);

}  // namespace gradring::kernels
