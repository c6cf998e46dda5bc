// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <type_traits>

#include "kernels/runtime/cuda/cuda_stream.h"

namespace gradring::kernels {

/// Work that was enqueued once, on a stream and on those that it was joined with by events, kept to be launched again and
/// again as one: a CUDA graph. It holds addresses, not memory: every buffer that the work used must outlive it. Move-only.
///
/// What a capture may hold: kernels, copies, clearing, and events between streams, as long as all streams are joined with
///           the first at the end. Not: host work and waiting by the host, which CudaStream refuses; memory freed by
///           cudaFree; events that the host then asks for, because a captured event is never reached.
/// Order     whoever holds communicators whose calls were captured destroys the graph before them: reset().
/// Threads   one at a time. While one thread captures, others may wait for events and enqueue on their streams.
class Graph {
 public:
  Graph() = default;

  /// Calls `enqueue_work`, which enqueues on `stream`; what it enqueues is kept and not run.
  ///
  /// Errors    what `enqueue_work` throws; DeviceError if it enqueued what cannot be captured. The stream is then as it
  ///           was before.
  static Graph capture(CudaStream& stream, const std::function<void()>& enqueue_work);

  /// Runs the whole once more, in the order of `stream`, which is of the captured one's device.
  ///
  /// Errors    InvalidArgument if nothing was captured; DeviceError if it cannot be launched.
  void enqueue(Stream& stream);

  /// Destroys what was captured. Work that was enqueued is finished first by the device; nobody waits for it here.
  void reset() noexcept { executable_.reset(); }

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t executable) const noexcept;
  };
  int device_index_ = 0;
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy> executable_;
};

}  // namespace gradring::kernels
