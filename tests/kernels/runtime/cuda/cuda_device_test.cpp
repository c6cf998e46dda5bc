// SPDX-License-Identifier: Apache-2.0
// What every device must do is in the tests beside this folder, which run on CUDA too; here is what CUDA's has of its own.
#include "kernels/runtime/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/runtime/cuda/device_count.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels {
namespace {

TEST(CudaDevice, RefusesAnIndexThatIsNotThere) {
  const DeviceCount count = count_devices();
  for (const int index : {-1, count.devices}) {
    try {
      const CudaDevice device(index);
      FAIL() << "opened cuda:" << index;
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.what(), why_no_device(count, index));
    }
  }
}

class CudaDeviceOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = why_no_device(count_devices(), 0);
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    device_ = std::make_unique<CudaDevice>(0);
  }
  std::unique_ptr<CudaDevice> device_;
};

TEST_F(CudaDeviceOnGpu, SaysWhatItIs) {
  EXPECT_EQ(device_->id().to_string(), "cuda:0");
  EXPECT_THAT(device_->description(), testing::ContainsRegex(", [0-9]+\\.[0-9] GiB, sm_[0-9]+$"));
}

TEST_F(CudaDeviceOnGpu, OutOfMemorySaysHowMuchIsMissing) {
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  try {
    const Buffer buffer = device_->allocate(total + (std::size_t{1} << 30), MemoryKind::device);
    FAIL() << "more than there is";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("are missing"), testing::HasSubstr("lower the batch")));
  }
}

TEST_F(CudaDeviceOnGpu, KeepsWhatWasFreed) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const void* first = device_->allocate(kBytes, MemoryKind::device).data();
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  EXPECT_EQ(device_->allocate(kBytes, MemoryKind::device).data(), first) << "the pool hands out the same block again";
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(before, after);
}

TEST_F(CudaDeviceOnGpu, ABadCallIsRefusedAndForgotten) {
  const auto stream = device_->make_stream(StreamMode::asynchronous);
  const Buffer buffer = device_->allocate(64, MemoryKind::device);
  EXPECT_THROW(stream->enqueue_copy(buffer.data(), buffer.data(), std::size_t{1} << 60), DeviceError);
  stream->enqueue_zero(buffer.data(), buffer.size());
  stream->synchronize(Deadline::after(std::chrono::seconds(30)));
}

TEST_F(CudaDeviceOnGpu, TwoDevicesInOneProcessFailApart) {
  CudaDevice other(0);
  const auto failing = device_->make_stream(StreamMode::asynchronous);
  const auto fine = other.make_stream(StreamMode::asynchronous);
  const Deadline soon = Deadline::after(std::chrono::seconds(30));
  failing->enqueue([] { throw DeviceError("host work failed"); });
  EXPECT_THROW(failing->synchronize(soon), DeviceError);
  fine->synchronize(soon);
}

}  // namespace
}  // namespace gradring::kernels
