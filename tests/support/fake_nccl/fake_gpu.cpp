// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_nccl/fake_gpu.h"

#include <algorithm>
#include <utility>

#include "kernels/base/error.h"

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

bool Capture::is_joined_to(const FakeStream& stream) const {
  const auto end = streams.find(&stream);
  return std::ranges::all_of(streams, [&](const auto& other) {
    const auto items_of = [&](const Position& position) {
      const auto count = position.find(other.first);
      return count == position.end() ? 0 : count->second;
    };
    return items_of(other.second) == items_of(end->second);
  });
}

void FakeGpu::make_current(int index) { current_device = index; }

int FakeGpu::current() { return current_device; }

/// Always asynchronous, as on a GPU.
std::unique_ptr<kernels::Stream> FakeGpu::make_stream(kernels::StreamMode) {
  return std::make_unique<FakeStream>(*this, inner_.make_stream(kernels::StreamMode::asynchronous));
}

std::unique_ptr<kernels::Recording> FakeGpu::record(kernels::Stream& stream, std::function<void()> enqueue_work) {
  auto& origin = static_cast<FakeStream&>(stream);
  origin.capture_ = capture_ = std::make_shared<Capture>(Capture{.thread = std::this_thread::get_id()});
  capture_->streams[&origin] = {};
  try {
    enqueue_work();
    check<DeviceError>(capture_->is_joined_to(origin),
                       "a capture ended without joining all streams: cudaErrorStreamCaptureUnjoined");
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
  const auto capture = capture_.lock();
  if (!capture) return item(*inner_);
  capture->items.push_back(std::move(item));
  ++capture->streams[this][this];
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
  if (!capture) return put([&event](Stream& stream) { stream.record(event); });
  check_no_group_is_held("an event was recorded");
  capture->events[&event] = capture->streams[this];
}

/// A stream that waits for an event of a capture joins the capture; a captured stream waits for nothing else (CUDA,
/// "Cross-stream Dependencies and Events").
void FakeStream::enqueue_wait(const kernels::Event& event) {
  if (gpu_.capture_ && gpu_.capture_->events.contains(&event)) capture_ = gpu_.capture_;
  const auto capture = capture_.lock();
  if (!capture) return put([&event](Stream& stream) { stream.enqueue_wait(event); });
  check_no_group_is_held("a wait was enqueued");
  const auto recorded = capture->events.find(&event);
  check<DeviceError>(
      recorded != capture->events.end(),
      "a captured stream waits for an event that was recorded outside of its capture: cudaErrorStreamCaptureIsolation");
  for (const auto& [stream, items] : recorded->second) {
    std::size_t& before = capture->streams[this][stream];
    before = std::max(before, items);
  }
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
