// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_nccl/fake_gpu.h"

#include <utility>

#include "kernels/runtime/error.h"

namespace gradring::tests {
namespace {

thread_local int current_device = 0;

}  // namespace

/// What a capture left.
class FakeGraph final : public kernels::Recording {
 public:
  explicit FakeGraph(std::vector<Capture::Item> items) : items_(std::move(items)) {}
  void enqueue(kernels::Stream& stream) override {
    auto& fake = static_cast<FakeStream&>(stream);
    fake.check_no_group_is_held("a graph was launched");
    for (const Capture::Item& item : items_) item(*fake.inner_);
    ++fake.gpu_.graph_launches_;
  }

 private:
  std::vector<Capture::Item> items_;
};

void FakeGpu::make_current(int index) { current_device = index; }

int FakeGpu::current() { return current_device; }

/// Always asynchronous, as on a GPU.
std::unique_ptr<kernels::Stream> FakeGpu::make_stream(kernels::StreamMode) {
  return std::make_unique<FakeStream>(*this, inner_.make_stream(kernels::StreamMode::asynchronous));
}

std::unique_ptr<kernels::Recording> FakeGpu::record(kernels::Stream& stream, std::function<void()> enqueue_work) {
  capture_ = std::make_shared<Capture>(Capture{.thread = std::this_thread::get_id()});
  static_cast<FakeStream&>(stream).capture_ = capture_;
  try {
    enqueue_work();
  } catch (...) {
    capture_.reset();
    throw;
  }
  return std::make_unique<FakeGraph>(std::move(std::exchange(capture_, nullptr)->items));
}

/// NCCL enqueues a group in its own thread, some time after ncclGroupEnd: the stream does not order it before `what`
/// (User Guide, "Group Calls": wait until the communicator is no longer in progress).
void FakeStream::check_no_group_is_held(const std::string& what) {
  if (held_operations_ > 0)
    gpu_.misuse_.note(what + " behind an NCCL group that is still in progress: it does not wait for the group");
}

void FakeStream::put(Capture::Item item) {
  check_no_group_is_held("work was enqueued");
  put_unchecked(std::move(item));
}

void FakeStream::put_unchecked(Capture::Item item) {
  if (const auto capture = capture_.lock())
    capture->items.push_back(std::move(item));
  else
    item(*inner_);
}

void FakeStream::enqueue_group(std::function<std::function<void()>()> group) {
  put_unchecked([group = std::move(group)](Stream& stream) { stream.enqueue(group()); });
}

void FakeStream::enqueue(std::function<void()> work) {
  put([work = std::move(work)](Stream& stream) { stream.enqueue(work); });
}

void FakeStream::enqueue_copy(void* to, const void* from, std::size_t bytes) {
  put([=](Stream& stream) { stream.enqueue_copy(to, from, bytes); });
}

void FakeStream::enqueue_zero(void* to, std::size_t bytes) {
  put([=](Stream& stream) { stream.enqueue_zero(to, bytes); });
}

void FakeStream::enqueue_launch(std::function<void(simt::Executor&)> launch) {
  put([launch = std::move(launch)](Stream& stream) {
    static_cast<simt::LaunchQueue*>(stream.native_handle())->enqueue_launch(launch);
  });
}

void FakeStream::record(kernels::Event& event) {
  const auto capture = capture_.lock();
  if (capture) capture->events.insert(&event);
  put([&event, captured = capture != nullptr](Stream& stream) {
    if (!captured) stream.record(event);
  });
}

void FakeStream::enqueue_wait(const kernels::Event& event) {
  if (gpu_.capture_ && gpu_.capture_->events.contains(&event)) capture_ = gpu_.capture_;
  put([&event, captured = capture() != nullptr](Stream& stream) {
    if (!captured) stream.enqueue_wait(event);
  });
}

void FakeStream::synchronize(Deadline deadline) {
  check<DeviceError>(!capture(), "a stream that is captured was synchronized: cudaErrorStreamCaptureUnsupported");
  check_no_group_is_held("a stream was synchronized");
  inner_->synchronize(deadline);
}

int FakeStream::device_index() const { return gpu_.index(); }

unsigned FakeStream::workers() const {
  return static_cast<const simt::LaunchQueue*>(inner_->native_handle())->workers();
}

}  // namespace gradring::tests
