// SPDX-License-Identifier: Apache-2.0
// Every call, and above all every release, is made with the right device current, whatever the thread: otherwise a rank
// that uses another device opens a context on device 0.

#include <gmock/gmock.h>

#include <memory>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "tests/kernels/runtime/cuda/fake_cuda_test.h"

namespace gradring::kernels {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;

/// After a test everything is released, and no other device was touched.
class CurrentDevice : public FakeCudaTest {
 protected:
  void TearDown() override {
    device_.reset();
    EXPECT_THAT(fake().contexts, ElementsAre(Key(kDevice)));
    EXPECT_THAT(fake().misplaced, IsEmpty());
    EXPECT_THAT(fake().alive, IsEmpty()) << "objects that were not released";
  }

  std::unique_ptr<CudaDevice> device_ = std::make_unique<CudaDevice>(kDevice);
};

TEST_F(CurrentDevice, StreamsAreReleasedOnAnyThread) {
  auto stream = device_->make_stream(StreamMode::asynchronous);
  on_new_thread([&] { stream.reset(); });
}

TEST_F(CurrentDevice, StreamsAreUsedOnAnyThread) {
  const auto stream = device_->make_stream(StreamMode::asynchronous);
  const Buffer buffer = device_->allocate(16, MemoryKind::device);
  bool ran = false;
  on_new_thread([&] { stream->enqueue([&] { ran = true; }); });
  on_new_thread([&] { stream->enqueue_zero(buffer.data(), 8); });
  on_new_thread([&] { stream->enqueue_copy(buffer.data() + 8, buffer.data(), 8); });
  on_new_thread([&] { EXPECT_FALSE(is_captured(*stream)); });
  on_new_thread([&] { stream->synchronize(soon()); });
  EXPECT_TRUE(ran);
}

TEST_F(CurrentDevice, EventsAreQueriedAndReleasedOnAnyThread) {
  const auto stream = device_->make_stream(StreamMode::asynchronous);
  auto event = device_->make_event();
  stream->record(*event);
  on_new_thread([&] { EXPECT_TRUE(event->reached()); });
  on_new_thread([&] { stream->enqueue_wait(*event); });
  on_new_thread([&] { event.reset(); });
}

TEST_F(CurrentDevice, TimersAreReadAndReleasedOnAnyThread) {
  const auto stream = device_->make_stream(StreamMode::asynchronous);
  auto timer = device_->make_timer();
  timer->start(*stream);
  timer->stop(*stream);
  on_new_thread([&] { EXPECT_GE(timer->seconds(), 0); });
  on_new_thread([&] { timer.reset(); });
}

TEST_F(CurrentDevice, MemoryIsReleasedOnAnyThread) {
  std::vector<Buffer> buffers;
  on_new_thread([&] { buffers.push_back(device_->allocate(64, MemoryKind::device)); });
  on_new_thread([&] { buffers.push_back(device_->allocate(64, MemoryKind::pinned)); });
  on_new_thread([&] { buffers.clear(); });
}

TEST_F(CurrentDevice, GraphsAreCapturedReplayedAndReleasedOnAnyThread) {
  const auto stream = device_->make_stream(StreamMode::asynchronous);
  const Buffer buffer = device_->allocate(1, MemoryKind::device);
  *buffer.data() = std::byte{7};
  std::unique_ptr<Recording> recording;
  on_new_thread(
      [&] { recording = device_->record(*stream, [&] { stream->enqueue_zero(buffer.data(), buffer.size()); }); });
  EXPECT_EQ(*buffer.data(), std::byte{7}) << "ran while it was captured";
  on_new_thread([&] { recording->enqueue(*stream); });
  EXPECT_EQ(*buffer.data(), std::byte{0});
  on_new_thread([&] { recording.reset(); });
}

TEST_F(CurrentDevice, FailedCapturesAreReleased) {
  const auto stream = device_->make_stream(StreamMode::asynchronous);
  EXPECT_THROW(device_->record(*stream, [&] { stream->synchronize(soon()); }), InvalidArgument);
  on_new_thread([&] { EXPECT_THROW(device_->record(*stream, [] { throw DeviceError("half way"); }), DeviceError); });
  stream->synchronize(soon());
}

TEST_F(CurrentDevice, DevicesAreReleasedOnAnyThread) {
  on_new_thread([&] { device_.reset(); });
}

/// A stream around another, such as one that times what it passes on.
class WrappedStream final : public Stream {
 public:
  explicit WrappedStream(Stream& inner) : inner_(inner) {}
  void enqueue(std::function<void()> work) override { inner_.enqueue(std::move(work)); }
  void enqueue_copy(void* to, const void* from, std::size_t bytes) override { inner_.enqueue_copy(to, from, bytes); }
  void enqueue_zero(void* to, std::size_t bytes) override { inner_.enqueue_zero(to, bytes); }
  void record(Event& event) override { inner_.record(event); }
  void enqueue_wait(const Event& event) override { inner_.enqueue_wait(event); }
  void synchronize(Deadline deadline) override { inner_.synchronize(deadline); }
  void* native_handle() override { return inner_.native_handle(); }
  int device_index() const override { return inner_.device_index(); }

 private:
  Stream& inner_;
};

TEST_F(CurrentDevice, WrappedStreamsAreCaptured) {
  const auto inner = device_->make_stream(StreamMode::asynchronous);
  WrappedStream stream(*inner);
  const Buffer buffer = device_->allocate(1, MemoryKind::device);
  bool captured = false;
  const auto recording = device_->record(stream, [&] {
    stream.enqueue_zero(buffer.data(), 1);
    captured = is_captured(stream);
  });
  EXPECT_TRUE(captured);
  EXPECT_FALSE(is_captured(stream));
  *buffer.data() = std::byte{7};
  recording->enqueue(stream);
  EXPECT_EQ(*buffer.data(), std::byte{0});
}

}  // namespace
}  // namespace gradring::kernels
