// SPDX-License-Identifier: Apache-2.0
// After a failure of the device, every call reports its cause, and nothing is released on another device.

#include <gmock/gmock.h>

#include <memory>

#include "kernels/base/error.h"
#include "tests/kernels/runtime/cuda/fake_cuda_test.h"

namespace gradring::kernels {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StrEq;
using testing::ThrowsMessage;

class FailedDevice : public FakeCudaTest {
 protected:
  void fail(Stream& stream) {
    stream.enqueue([] { throw DeviceError("the first cause"); });
  }

  CudaDevice device_{kDevice};
};

TEST_F(FailedDevice, RecordingsThrowTheCauseInsteadOfRunning) {
  const auto stream = device_.make_stream(StreamMode::asynchronous);
  const Buffer buffer = device_.allocate(1, MemoryKind::device);
  const auto clear = [&] { stream->enqueue_zero(buffer.data(), 1); };
  const auto recording = device_.record(*stream, clear);
  fail(*stream);
  EXPECT_THAT([&] { recording->enqueue(*stream); }, ThrowsMessage<DeviceError>(StrEq("the first cause")));
  EXPECT_THAT([&] { device_.record(*stream, [] {}); }, ThrowsMessage<DeviceError>(StrEq("the first cause")));
  EXPECT_EQ(fake().calls["cudaGraphLaunch"], 0);
}

/// On a new thread: there the device is not current yet.
TEST_F(FailedDevice, StreamsOfALostDeviceAreNotReportedAsHanging) {
  const auto failure = std::make_shared<DeviceFailure>();
  auto stream = std::make_unique<CudaStream>(kDevice, failure);
  fake().lost = true;
  on_new_thread([&] { stream.reset(); });
  EXPECT_THAT([&] { failure->rethrow(); }, ThrowsMessage<DeviceError>(HasSubstr("cuda:2 cannot be used any more")));
  EXPECT_EQ(fake().calls["cudaStreamDestroy"], 0) << "on another device";
  EXPECT_THAT(fake().misplaced, IsEmpty());
}

}  // namespace
}  // namespace gradring::kernels
