// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cuda_stream.h"

#include <string>
#include <utility>

#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/cuda/cuda_event.h"
#include "kernels/runtime/error.h"
#include "kernels/runtime/poll_until.h"

namespace gradring::kernels {
namespace {

/// How long a destructor waits for work that is still enqueued.
constexpr std::chrono::seconds kLongestFinish(30);

}  // namespace

void CudaStream::Destroy::operator()(cudaStream_t stream) const noexcept { (void)cudaStreamDestroy(stream); }

CudaStream::CudaStream(int index, std::shared_ptr<DeviceFailure> failure)
    : index_(index), failure_(failure), host_work_(std::move(failure)) {
  make_current(index_);
  cudaStream_t stream = nullptr;
  cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_.reset(stream);
}

CudaStream::~CudaStream() {
  cudaError_t state = cudaErrorNotReady;
  poll_until([&] { return (state = cudaStreamQuery(stream_.get())) != cudaErrorNotReady; },
             Deadline::after(kLongestFinish));
  if (state != cudaSuccess) host_work_.abandon();
}

void CudaStream::begin_call() {
  failure_->rethrow();
  make_current(index_);
}

bool CudaStream::is_captured() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cuda_check(cudaStreamIsCapturing(stream_.get(), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

void CudaStream::refuse_if_captured(std::string_view call) const {
  if (is_captured())
    throw InvalidArgument(std::string(call) + " cannot be part of a CUDA graph: do it before or after the capture");
}

void CudaStream::enqueue(std::function<void()> work) {
  begin_call();
  refuse_if_captured("host work");
  host_work_.enqueue(std::move(work), stream_.get());
}

void CudaStream::enqueue_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  begin_call();
  cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get()), "cudaMemcpyAsync");
}

void CudaStream::enqueue_zero(void* to, std::size_t bytes) {
  if (bytes == 0) return;
  begin_call();
  cuda_check(cudaMemsetAsync(to, 0, bytes, stream_.get()), "cudaMemsetAsync");
}

void CudaStream::record(Event& event) {
  begin_call();
  auto& mark = static_cast<CudaEvent&>(event);
  cuda_check(cudaEventRecord(mark.handle(), stream_.get()), "cudaEventRecord");
  mark.mark_recorded();
}

void CudaStream::enqueue_wait(const Event& event) {
  begin_call();
  cuda_check(cudaStreamWaitEvent(stream_.get(), static_cast<const CudaEvent&>(event).handle()), "cudaStreamWaitEvent");
}

void CudaStream::synchronize(Deadline deadline) {
  begin_call();
  refuse_if_captured("waiting for a stream");
  cudaError_t state = cudaErrorNotReady;
  const bool done = poll_until([&] { return (state = cudaStreamQuery(stream_.get())) != cudaErrorNotReady; }, deadline);
  failure_->rethrow();
  check<DeviceError>(done,
                     "a stream of cuda:" + std::to_string(index_) + " did not finish its work before the deadline");
  cuda_check(state, "cudaStreamQuery");
}

}  // namespace gradring::kernels
