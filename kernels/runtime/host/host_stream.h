// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/stream.h"
#include "kernels/simt/executor.h"
#include "kernels/simt/launch_queue.h"

namespace gradring::kernels {

/// What both CPU streams share: everything is host work, in order.
class HostStream : public Stream, public simt::LaunchQueue {
 public:
  explicit HostStream(const simt::ExecutorOptions& execution) : executor_(execution) {}

  void enqueue_copy(void* to, const void* from, std::size_t bytes) final;
  void enqueue_zero(void* to, std::size_t bytes) final;
  void enqueue_wait(const Event& event) final;
  unsigned workers() const final { return executor_.workers(); }
  void* native_handle() final { return static_cast<simt::LaunchQueue*>(this); }

 protected:
  simt::Executor executor_;
};

}  // namespace gradring::kernels
