// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <memory>

#include "kernels/base/error.h"
#include "tests/kernels/runtime/cuda/fake_cuda_test.h"

namespace gradring::kernels {
namespace {

using testing::IsEmpty;

class PinnedMemoryTest : public FakeCudaTest {
 protected:
  std::shared_ptr<DeviceFailure> failure_ = std::make_shared<DeviceFailure>();
  std::unique_ptr<PinnedMemory> memory_ = std::make_unique<PinnedMemory>(kDevice, failure_);
};

TEST_F(PinnedMemoryTest, ReleaseDoesNotWaitForAHungDevice) {
  Buffer buffer = memory_->allocate(100);
  fake().hangs = true;
  buffer = {};
  EXPECT_THAT(fake().blocked, IsEmpty());
  fake().hangs = false;
  memory_.reset();
  EXPECT_EQ(fake().calls["cudaFreeHost"], 1);
}

TEST_F(PinnedMemoryTest, IsNotGivenBackAfterAFailure) {
  { const Buffer buffer = memory_->allocate(100); }
  fake().hangs = true;
  failure_->keep(std::make_exception_ptr(DeviceError("a stream hangs")));
  memory_.reset();
  EXPECT_THAT(fake().blocked, IsEmpty());
}

TEST_F(PinnedMemoryTest, ReusesTheSmallestBlockWithRoom) {
  void* small = nullptr;
  void* large = nullptr;
  {
    const Buffer a = memory_->allocate(100);
    const Buffer b = memory_->allocate(150);
    small = a.data();
    large = b.data();
  }
  const Buffer first = memory_->allocate(90);
  const Buffer second = memory_->allocate(90);
  EXPECT_EQ(first.data(), small);
  EXPECT_EQ(first.size(), 90u);
  EXPECT_EQ(second.data(), large);
  EXPECT_EQ(fake().calls["cudaHostAlloc"], 2);
  const Buffer third = memory_->allocate(90);
  EXPECT_EQ(fake().calls["cudaHostAlloc"], 3) << "all blocks are in use";
}

TEST_F(PinnedMemoryTest, DoesNotSpendALargeBlockOnLittle) {
  { const Buffer large = memory_->allocate(1000); }
  const Buffer little = memory_->allocate(100);
  EXPECT_EQ(fake().calls["cudaHostAlloc"], 2);
}

TEST_F(PinnedMemoryTest, ReleasesAndReusesBlocksWhileAnotherThreadAllocates) {
  Buffer known = memory_->allocate(100);
  std::future<void> other;
  fake().during_host_alloc = [&] {
    other = std::async(std::launch::async, [&] {
      known = {};
      known = memory_->allocate(100);
    });
    EXPECT_EQ(other.wait_for(std::chrono::seconds(10)), std::future_status::ready) << "blocked by cudaHostAlloc";
  };
  const Buffer slow = memory_->allocate(1000);
  other.get();
  EXPECT_NE(known.data(), slow.data());
  EXPECT_EQ(fake().calls["cudaHostAlloc"], 2);
}

}  // namespace
}  // namespace gradring::kernels
