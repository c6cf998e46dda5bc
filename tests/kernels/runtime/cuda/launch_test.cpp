// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/runtime/cuda/launches.h"

#include <gmock/gmock.h>

#include "kernels/base/error.h"
#include "tests/kernels/runtime/cuda/fake_cuda_test.h"

namespace gradring::kernels {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;

class CudaLaunch : public FakeCudaTest {
 protected:
  CudaDevice device_{kDevice};
  std::unique_ptr<Stream> stream_ = device_.make_stream(StreamMode::asynchronous);
};

TEST_F(CudaLaunch, IsOnTheDeviceOfItsStream) {
  on_new_thread([&] { tests::launch_nothing(*stream_, 0); });
  on_new_thread([&] { tests::launch_nothing_for(*stream_, 1000); });
  EXPECT_EQ(fake().calls["cudaLaunchKernelExC"], 2);
  EXPECT_THAT(fake().contexts, ElementsAre(Key(kDevice)));
  EXPECT_THAT(fake().misplaced, IsEmpty());
}

TEST_F(CudaLaunch, DoesNotAskTheDriverForTheDevice) {
  tests::launch_nothing(*stream_, 0);
  tests::launch_nothing_for(*stream_, 1000);
  EXPECT_EQ(fake().calls["cudaStreamGetDevice"], 0);
}

TEST_F(CudaLaunch, AsksForSharedMemoryBeyondWhatABlockHas) {
  constexpr std::size_t kKilobyte = 1024;
  fake().static_shared[tests::nothing_kernel_address()] = 32 * kKilobyte;
  tests::launch_nothing(*stream_, 16 * kKilobyte);
  EXPECT_THAT(fake().allowed_shared, IsEmpty());
  tests::launch_nothing(*stream_, 16 * kKilobyte + 1);  // static and dynamic together are too much
  tests::launch_nothing(*stream_, 64 * kKilobyte);      // dynamic alone is
  EXPECT_EQ(fake().allowed_shared[tests::nothing_kernel_address()], 64 * kKilobyte);
  tests::launch_nothing(*stream_, 56 * kKilobyte);
  tests::launch_nothing(*stream_, 64 * kKilobyte);
  EXPECT_EQ(fake().calls["cudaFuncSetAttribute"], 2) << "asked again for what it has";
  EXPECT_EQ(fake().calls["cudaFuncGetAttributes"], 3);
}

TEST_F(CudaLaunch, KeepsTheSharedMemoryThatAnotherLaunchNeeds) {
  const void* const kernel = tests::nothing_kernel_address();
  fake().static_shared[kernel] = 0;
  SharedMemoryLimit limit(kernel);
  limit.raise_to(100 * 1024, kDevice);
  limit.raise_to(64 * 1024, kDevice);
  EXPECT_EQ(fake().allowed_shared[kernel], std::size_t{100 * 1024});
  limit.raise_to(64 * 1024, kDevice + 1);
  EXPECT_EQ(fake().calls["cudaFuncSetAttribute"], 2) << "each device has its own limit";
}

TEST_F(CudaLaunch, ReportsTheResourcesOfAKernelAndOfNoOtherAddress) {
  const void* const kernel = tests::nothing_kernel_address();
  fake().static_shared[kernel] = 1024;
  const LaunchReport::Resources resources = launch_resources(kernel, 65, 0);
  EXPECT_EQ(resources.static_shared_bytes, 1024u);
  EXPECT_EQ(resources.resident_warps, 3) << "one block of 65 threads";
  EXPECT_EQ(resources.most_warps, 64);
  const int no_kernel = 0;
  EXPECT_THROW(launch_resources(&no_kernel, 32, 0), DeviceError);
}

}  // namespace
}  // namespace gradring::kernels
