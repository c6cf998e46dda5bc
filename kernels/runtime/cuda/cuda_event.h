// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <memory>
#include <type_traits>

#include "kernels/runtime/cuda/device_failure.h"
#include "kernels/runtime/event.h"

namespace gradring::kernels {

/// A cudaEvent_t without timing, which makes it cheaper to record.
class CudaEvent final : public Event {
 public:
  /// For streams of device `index`.
  CudaEvent(int index, std::shared_ptr<DeviceFailure> failure);

  /// Errors    DeviceError: what went wrong on the device, once the event was recorded.
  bool reached() const override;

  /// Called when a stream has recorded the event.
  void mark_recorded() { recorded_.store(true, std::memory_order_release); }
  cudaEvent_t handle() const { return event_.get(); }

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const noexcept;
  };
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy> event_;
  std::shared_ptr<DeviceFailure> failure_;
  std::atomic<bool> recorded_{false};
};

}  // namespace gradring::kernels
