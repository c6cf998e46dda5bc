// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/host_work.h"

#include <utility>

#include "kernels/runtime/cuda/cuda_error.h"

namespace gradring::kernels {

HostWork::Item::Item(std::function<void()> function_to_call, std::shared_ptr<DeviceFailure> failure_to_note)
    : function(std::move(function_to_call)), failure(std::move(failure_to_note)) {}

void HostWork::Item::run(void* item) noexcept {
  Item& self = *static_cast<Item*>(item);
  try {
    if (!self.failure->happened()) self.function();
  } catch (...) {
    self.failure->keep(std::current_exception());
  }
  self.done.store(true, std::memory_order_release);  // last: from here on the item may be destroyed
}

HostWork::HostWork(std::shared_ptr<DeviceFailure> failure)
    : failure_(std::move(failure)), items_(std::make_unique<std::deque<Item>>()) {}

HostWork::~HostWork() = default;

void HostWork::enqueue(std::function<void()> function, cudaStream_t stream) {
  while (!items_->empty() && items_->front().done.load(std::memory_order_acquire)) items_->pop_front();
  Item& item = items_->emplace_back(std::move(function), failure_);
  const cudaError_t result = cudaLaunchHostFunc(stream, &Item::run, &item);
  if (result != cudaSuccess) items_->pop_back();
  cuda_check(result, "cudaLaunchHostFunc");
}

}  // namespace gradring::kernels
