// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string_view>
#include <type_traits>

#include "kernels/runtime/cuda/device_failure.h"
#include "kernels/runtime/cuda/host_work.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels {

/// A cudaStream_t that does not wait for the legacy default stream. Asynchronous, whatever mode was asked for. After an
/// error in enqueued work every call throws it; a call that CUDA refuses outright throws and leaves the stream as it was.
/// The destructor waits, within a deadline, until what is enqueued is done.
///
/// While the stream is captured (graph.h), enqueue and synchronize are refused: a graph would run the host function again
/// after it is gone, and captured work never gets done.
class CudaStream final : public Stream {
 public:
  /// On device `index`.
  CudaStream(int index, std::shared_ptr<DeviceFailure> failure);
  ~CudaStream() override;

  /// Errors    InvalidArgument while the stream is captured.
  void enqueue(std::function<void()> work) override;
  void enqueue_copy(void* to, const void* from, std::size_t bytes) override;
  void enqueue_zero(void* to, std::size_t bytes) override;
  void record(Event& event) override;
  void enqueue_wait(const Event& event) override;
  /// Errors    InvalidArgument while the stream is captured; DeviceError if the deadline passes first.
  void synchronize(Deadline deadline) override;
  void* native_handle() override { return stream_.get(); }

  int device_index() const { return index_; }
  /// Whether what is enqueued now goes into a graph.
  bool is_captured() const;

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const noexcept;
  };
  /// What every call does first.
  void begin_call();
  void refuse_if_captured(std::string_view call) const;

  int index_;
  std::shared_ptr<DeviceFailure> failure_;
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy> stream_;
  HostWork host_work_;
};

}  // namespace gradring::kernels
