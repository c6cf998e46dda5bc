// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cuda_event.h"

#include <utility>

#include "kernels/runtime/cuda/cuda_error.h"

namespace gradring::kernels {

void CudaEvent::Destroy::operator()(cudaEvent_t event) const noexcept { (void)cudaEventDestroy(event); }

CudaEvent::CudaEvent(int index, std::shared_ptr<DeviceFailure> failure) : failure_(std::move(failure)) {
  make_current(index);
  cudaEvent_t event = nullptr;
  cuda_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  event_.reset(event);
}

bool CudaEvent::reached() const {
  if (!recorded_.load(std::memory_order_acquire)) return true;
  const cudaError_t state = cudaEventQuery(event_.get());
  failure_->rethrow();  // asked after the query: host work that failed before the event has noted it by now
  if (state == cudaErrorNotReady) return false;
  cuda_check(state, "cudaEventQuery");
  return true;
}

}  // namespace gradring::kernels
