// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/device_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradring::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kDriver = 13000;
constexpr int kRuntime = 13000;

TEST(WhyNoDevice, IsEmptyWhereThereIsOne) {
  EXPECT_EQ(why_no_device({cudaSuccess, 1, kDriver, kRuntime}, 0), "");
  EXPECT_EQ(why_no_device({cudaSuccess, 8, kDriver, kRuntime}, 7), "");
}

TEST(WhyNoDevice, NoDriver) {
  EXPECT_THAT(why_no_device({cudaErrorInsufficientDriver, 0, 0, kRuntime}, 0),
              AllOf(StartsWith("no CUDA device: "), HasSubstr("driver is not installed")));
  EXPECT_THAT(why_no_device({cudaErrorNoDevice, 0, 0, kRuntime}, 0), HasSubstr("driver is not installed"));
}

TEST(WhyNoDevice, OldDriver) {
  EXPECT_THAT(
      why_no_device({cudaErrorInsufficientDriver, 0, 12040, kRuntime}, 0),
      AllOf(StartsWith("no CUDA device: "), HasSubstr("supports CUDA 12.4, this build needs 13.0: update the driver")));
}

TEST(WhyNoDevice, NoGpu) {
  for (const cudaError_t result : {cudaErrorNoDevice, cudaSuccess})
    EXPECT_THAT(why_no_device({result, 0, 12080, kRuntime}, 0),
                AllOf(StartsWith("no CUDA device: "), HasSubstr("CUDA 12.8"), HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST(WhyNoDevice, AnythingElseByItsName) {
  EXPECT_THAT(why_no_device({cudaErrorSystemNotReady, 0, kDriver, kRuntime}, 0),
              AllOf(StartsWith("no CUDA device: "), HasSubstr("cudaErrorSystemNotReady"), HasSubstr("nvidia-smi")));
}

TEST(WhyNoDevice, AnIndexThatIsNotThere) {
  EXPECT_THAT(why_no_device({cudaSuccess, 1, kDriver, kRuntime}, 1),
              AllOf(HasSubstr("no device cuda:1"), HasSubstr("sees 1 CUDA device, cuda:0;")));
  EXPECT_THAT(why_no_device({cudaSuccess, 4, kDriver, kRuntime}, 4),
              AllOf(HasSubstr("no device cuda:4"), HasSubstr("sees 4 CUDA devices, cuda:0 to cuda:3;")));
  EXPECT_NE(why_no_device({cudaSuccess, 4, kDriver, kRuntime}, -1), "");
}

TEST(CountDevices, AsksThisMachine) {
  const DeviceCount count = count_devices();
  EXPECT_GE(count.runtime_version, 12000);
  EXPECT_EQ(count.devices, cuda_device_count());
  EXPECT_EQ(why_no_device(count, 0).empty(), count.devices > 0);
}

}  // namespace
}  // namespace gradring::kernels
