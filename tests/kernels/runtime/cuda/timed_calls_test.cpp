// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/timed_calls.h"

#include "tests/kernels/runtime/cuda/fake_cuda_test.h"

namespace gradring::kernels {
namespace {

using tests::FakeCuda;

/// Work that the device finishes before the host has enqueued the next.
class TimedCallsOnCuda : public FakeCudaTest {
 protected:
  static_assert(FakeCuda::kEnqueueSeconds > 2 * FakeCuda::kWorkSeconds);

  void work() { stream_->enqueue_zero(buffer_.data(), buffer_.size()); }

  CudaDevice device_{kDevice};
  std::unique_ptr<Stream> stream_ = device_.make_stream(StreamMode::asynchronous);
  Buffer buffer_ = device_.allocate(8, MemoryKind::device);
};

TEST_F(TimedCallsOnCuda, ReportTheDevicesTime) {
  for (const int calls : {20, 100}) {
    TimedCalls timed(
        device_, *stream_, [&] { work(); }, calls);
    EXPECT_NEAR(timed.seconds(soon()), FakeCuda::kWorkSeconds, 1e-3 * FakeCuda::kWorkSeconds);
  }
}

TEST_F(TimedCallsOnCuda, ReportOneCallAfterOtherWork) {
  TimedCalls timed(
      device_, *stream_, [&] { work(); }, 1);
  const auto other_work = [&] {
    for (int i = 0; i < 50; ++i) stream_->enqueue_zero(buffer_.data(), buffer_.size());
  };
  TimedCalls long_work(device_, *stream_, other_work, 1);
  const auto seconds = timed.seconds_after([&] { long_work.seconds(soon()); }, soon());
  EXPECT_GT(seconds, FakeCuda::kEnqueueSeconds) << "work that ends too early hides nothing";
  const auto recording = device_.record(*stream_, other_work);
  EXPECT_NEAR(timed.seconds_after([&] { recording->enqueue(*stream_); }, soon()), FakeCuda::kWorkSeconds,
              1e-3 * FakeCuda::kWorkSeconds);
}

TEST_F(TimedCallsOnCuda, MarksAroundOneCallMeasureTheHost) {
  const auto timer = device_.make_timer();
  timer->start(*stream_);
  work();
  timer->stop(*stream_);
  EXPECT_GT(timer->seconds(), 2 * FakeCuda::kWorkSeconds) << "otherwise the tests above prove nothing";
}

}  // namespace
}  // namespace gradring::kernels
