// SPDX-License-Identifier: Apache-2.0
// What a capture may hold, by the rules of CUDA that the fake runtime knows.

#include <gmock/gmock.h>

#include <memory>

#include "kernels/base/error.h"
#include "tests/kernels/runtime/cuda/fake_cuda_test.h"

namespace gradring::kernels {
namespace {

using testing::HasSubstr;
using testing::Throws;
using testing::ThrowsMessage;

class Capture : public FakeCudaTest {
 protected:
  void clear(Stream& stream) { stream.enqueue_zero(buffer_.data(), 1); }
  auto recording(const std::function<void()>& enqueue_work) {
    return [this, enqueue_work] { device_.record(*stream_, enqueue_work); };
  }
  /// The stream runs work again, after a capture that failed.
  void expect_usable(Stream& stream) {
    *buffer_.data() = std::byte{7};
    clear(stream);
    EXPECT_EQ(*buffer_.data(), std::byte{0});
    stream.synchronize(soon());
  }

  CudaDevice device_{kDevice};
  std::unique_ptr<Stream> stream_ = device_.make_stream(StreamMode::asynchronous);
  std::unique_ptr<Stream> side_ = device_.make_stream(StreamMode::asynchronous);
  std::unique_ptr<Event> fork_ = device_.make_event();
  std::unique_ptr<Event> join_ = device_.make_event();
  Buffer buffer_ = device_.allocate(1, MemoryKind::device);
};

TEST_F(Capture, FailsIfItsThreadQueriesAnEvent) {
  stream_->record(*fork_);
  EXPECT_THAT(recording([&] { (void)fork_->reached(); }), ThrowsMessage<DeviceError>(HasSubstr("cudaEventQuery")));
  expect_usable(*stream_);
}

TEST_F(Capture, FailsEvenIfTheErrorOfAForbiddenCallIsIgnored) {
  stream_->record(*fork_);
  const auto query = [&] { EXPECT_THROW((void)fork_->reached(), DeviceError); };
  EXPECT_THAT(recording(query), ThrowsMessage<DeviceError>(HasSubstr("cudaStreamEndCapture")));
  expect_usable(*stream_);
}

/// As a watchdog does.
TEST_F(Capture, AllowsOtherThreadsToQueryAndEnqueue) {
  side_->record(*fork_);
  EXPECT_NO_THROW(recording([&] {
    on_new_thread([&] {
      EXPECT_TRUE(fork_->reached());
      expect_usable(*side_);
    });
    clear(*stream_);
  })());
}

TEST_F(Capture, FailsIfItsThreadAllocatesPinnedMemory) {
  EXPECT_THAT(recording([&] { (void)device_.allocate(64, MemoryKind::pinned); }),
              ThrowsMessage<DeviceError>(HasSubstr("cudaHostAlloc")));
  expect_usable(*stream_);
}

TEST_F(Capture, AllowsReleaseOfMemory) {
  Buffer block = device_.allocate(64, MemoryKind::device);
  Buffer pinned = device_.allocate(64, MemoryKind::pinned);
  EXPECT_NO_THROW(recording([&] {
    clear(*stream_);
    block = {};
    pinned = {};
  })());
}

TEST_F(Capture, IncludesStreamsThatAreJoined) {
  const auto recording = device_.record(*stream_, [&] {
    stream_->record(*fork_);
    side_->enqueue_wait(*fork_);
    clear(*side_);
    side_->record(*join_);
    stream_->enqueue_wait(*join_);
  });
  expect_usable(*side_);
  *buffer_.data() = std::byte{7};
  recording->enqueue(*stream_);
  EXPECT_EQ(*buffer_.data(), std::byte{0});
  EXPECT_THROW((void)join_->reached(), DeviceError) << "recorded in a graph, which no host can wait for";
}

TEST_F(Capture, FailsIfAStreamIsNotJoined) {
  EXPECT_THAT(recording([&] {
                stream_->record(*fork_);
                side_->enqueue_wait(*fork_);
                clear(*side_);
              }),
              Throws<DeviceError>());
  expect_usable(*stream_);
  expect_usable(*side_);
}

TEST_F(Capture, FailsIfItWaitsForWorkOutside) {
  side_->record(*fork_);
  EXPECT_THAT(recording([&] { stream_->enqueue_wait(*fork_); }), Throws<DeviceError>());
  expect_usable(*stream_);
}

}  // namespace
}  // namespace gradring::kernels
