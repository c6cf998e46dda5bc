// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cuda_stream.h"

#include <string>
#include <utility>

#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "kernels/runtime/cuda/cuda_error.h"

namespace gradring::kernels {

CudaEvent::CudaEvent(int index, std::shared_ptr<DeviceFailure> failure)
    : index_(index), event_(nullptr, {index}), failure_(std::move(failure)) {
  make_current(index_);
  cudaEvent_t event = nullptr;
  cuda_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  event_.reset(event);
}

bool CudaEvent::reached() const {
  if (!recorded_.load(std::memory_order_acquire)) return true;
  make_current(index_);  // whoever asks may be a thread that has used no device yet
  const cudaError_t state = cudaEventQuery(event_.get());
  failure_->rethrow();  // asked after the query: host work that failed before the event has noted it by now
  if (state == cudaErrorNotReady) return false;
  cuda_check(state, "cudaEventQuery");
  return true;
}

void HostWork::Item::run(void* item) noexcept {
  Item& self = *static_cast<Item*>(item);
  try {
    if (!self.failure->happened()) self.function();
  } catch (...) {
    self.failure->keep(std::current_exception());
  }
  self.done.store(true, std::memory_order_release);  // last: from here on the item may be destroyed
}

void HostWork::enqueue(std::function<void()> function, cudaStream_t stream) {
  while (!items_->empty() && items_->front().done.load(std::memory_order_acquire)) items_->pop_front();
  Item& item = items_->emplace_back(std::move(function), failure_);
  const cudaError_t result = cudaLaunchHostFunc(stream, &Item::run, &item);
  if (result != cudaSuccess) items_->pop_back();
  cuda_check(result, "cudaLaunchHostFunc");
}

namespace {

/// How long a destructor waits for work that is still enqueued.
constexpr std::chrono::seconds kLongestFinish(30);

}  // namespace

CudaStream::CudaStream(int index, std::shared_ptr<DeviceFailure> failure)
    : index_(index), failure_(failure), stream_(nullptr, {index}), host_work_(std::move(failure)) {
  make_current(index_);
  cudaStream_t stream = nullptr;
  cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_.reset(stream);
}

CudaStream::~CudaStream() {
  const std::string device = "cuda:" + std::to_string(index_);
  cudaError_t state = cudaErrorNotReady;
  if (!try_make_current(index_))
    failure_->keep(std::make_exception_ptr(DeviceError(device + " cannot be used any more: CUDA cannot select it")));
  else if (!poll_until([&] { return (state = cudaStreamQuery(stream_.get())) != cudaErrorNotReady; },
                       Deadline::after(kLongestFinish)))
    failure_->keep(std::make_exception_ptr(DeviceError("a stream of " + device + " hangs")));
  if (state != cudaSuccess) host_work_.abandon();
}

void CudaStream::begin_call() {
  failure_->rethrow();
  make_current(index_);
}

bool is_captured(Stream& stream) {
  make_current(stream.device_index());
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cuda_check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream.native_handle()), &status),
             "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

void CudaStream::refuse_if_captured(std::string_view call) {
  if (is_captured(*this))
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
  check<DeviceError>(done, [&] {
    return "a stream of cuda:" + std::to_string(index_) + " did not finish its work before the deadline";
  });
  cuda_check(state, "cudaStreamQuery");
}

CudaTimer::CudaTimer(int index) : index_(index), start_(make_mark()), stop_(make_mark()) {}

CudaTimer::Mark CudaTimer::make_mark() const {
  make_current(index_);
  cudaEvent_t event = nullptr;
  cuda_check(cudaEventCreate(&event), "cudaEventCreate");
  return Mark(event, {index_});
}

void CudaTimer::record(const Mark& mark, Stream& stream) {
  make_current(index_);
  cuda_check(cudaEventRecord(mark.get(), static_cast<cudaStream_t>(stream.native_handle())), "cudaEventRecord");
}

double CudaTimer::seconds() const {
  constexpr double kMillisecond = 1e-3;
  make_current(index_);
  float milliseconds = 0;
  cuda_check(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()), "cudaEventElapsedTime");
  return milliseconds * kMillisecond;
}

namespace {

using Definition = CudaHandle<cudaGraph_t, cudaGraphDestroy>;

/// Ends the capture; what it held is dropped if `enqueue_work` threw.
Definition end_capture(Stream& stream, cudaError_t& result) {
  cudaGraph_t graph = nullptr;
  result = cudaStreamEndCapture(static_cast<cudaStream_t>(stream.native_handle()), &graph);
  return Definition(graph, {stream.device_index()});
}

Definition capture_definition(Stream& stream, const std::function<void()>& enqueue_work) {
  make_current(stream.device_index());
  // Thread-local: the strict modes let a capture fail when a watchdog in another thread asks for an event.
  cuda_check(
      cudaStreamBeginCapture(static_cast<cudaStream_t>(stream.native_handle()), cudaStreamCaptureModeThreadLocal),
      "cudaStreamBeginCapture");
  cudaError_t result = cudaSuccess;
  try {
    enqueue_work();
  } catch (...) {
    end_capture(stream, result);
    (void)cudaGetLastError();
    throw;
  }
  Definition definition = end_capture(stream, result);
  cuda_check(result, "cudaStreamEndCapture");
  return definition;
}

}  // namespace

Graph Graph::capture(Stream& stream, const std::function<void()>& enqueue_work) {
  const Definition definition = capture_definition(stream, enqueue_work);
  cudaGraphExec_t executable = nullptr;
  cuda_check(cudaGraphInstantiate(&executable, definition.get(), 0), "cudaGraphInstantiate");
  Graph graph;
  graph.device_index_ = stream.device_index();
  graph.executable_ = {executable, {graph.device_index_}};
  return graph;
}

void Graph::enqueue(Stream& stream) {
  check(executable_ != nullptr, "an empty graph cannot be enqueued: capture something first");
  make_current(device_index_);
  cuda_check(cudaGraphLaunch(executable_.get(), static_cast<cudaStream_t>(stream.native_handle())), "cudaGraphLaunch");
}

}  // namespace gradring::kernels
