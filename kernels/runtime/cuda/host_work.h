// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>

#include "kernels/runtime/cuda/device_failure.h"

namespace gradring::kernels {

/// The host functions that one stream has still to run. CUDA calls them on a thread of its own, where nothing may throw
/// and nothing may call CUDA, not even to free memory; so an error is kept, and what a function holds is destroyed later,
/// by the thread that enqueues. After a failure of the device, functions are dropped instead of called.
///
/// Threads   one thread enqueues and destroys; CUDA's calls.
class HostWork {
 public:
  explicit HostWork(std::shared_ptr<DeviceFailure> failure);
  /// Expects that none is left to run; see abandon.
  ~HostWork();

  /// Errors    DeviceError if the stream does not take it.
  void enqueue(std::function<void()> function, cudaStream_t stream);

  /// Gives up what CUDA may still call: it is never destroyed. For a stream that hangs or has failed.
  void abandon() noexcept { (void)items_.release(); }

 private:
  struct Item {
    Item(std::function<void()> function, std::shared_ptr<DeviceFailure> failure);
    static void CUDART_CB run(void* item) noexcept;

    std::function<void()> function;
    std::shared_ptr<DeviceFailure> failure;
    std::atomic<bool> done{false};
  };
  std::shared_ptr<DeviceFailure> failure_;
  std::unique_ptr<std::deque<Item>> items_;  // a deque: CUDA holds addresses of its items
};

}  // namespace gradring::kernels
