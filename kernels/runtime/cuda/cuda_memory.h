// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "kernels/runtime/device.h"

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
  struct Destroy {
    void operator()(cudaMemPool_t pool) const noexcept;
    void operator()(cudaStream_t stream) const noexcept;
  };
  /// What is free on the device, and in the pool.
  std::size_t free_bytes(std::size_t& total) const;

  int index_;
  std::unique_ptr<std::remove_pointer_t<cudaMemPool_t>, Destroy> pool_;
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy> stream_;
};

/// Host memory that stays where it is, so that every device of the process copies from and to it without a detour. Slow
/// to get, and to give back, which may wait for the device: keep it.
///
/// Threads   any.
class PinnedMemory final : public Buffer::Resource {
 public:
  /// For device `index`, though others reach it too.
  explicit PinnedMemory(int index) : index_(index) {}

  /// Errors    DeviceError if the memory is not available.
  Buffer allocate(std::size_t bytes);
  void release(void* data, std::size_t bytes) noexcept override;

 private:
  int index_;
};

}  // namespace gradring::kernels
