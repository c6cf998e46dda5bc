// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cuda_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/runtime/cuda/device_count.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels {
namespace {

TEST(CudaCheck, NamesTheCallTheErrorAndTheCaller) {
  const int line = __LINE__ + 2;
  try {
    cuda_check(cudaErrorIllegalAddress, "cudaMemcpyAsync");
    FAIL() << "an error went by";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("cudaMemcpyAsync failed"),
                               testing::HasSubstr("cudaErrorIllegalAddress, an illegal memory access was encountered"),
                               testing::HasSubstr("cuda_error_test.cpp:" + std::to_string(line))));
  }
}

TEST(CudaCheck, LetsSuccessPass) { EXPECT_NO_THROW(cuda_check(cudaSuccess, "cudaMemcpyAsync")); }

TEST(CudaCheck, ClearsWhatTheRuntimeNoted) {
  if (const std::string why_not = why_no_device(count_devices(), 0); !why_not.empty()) GTEST_SKIP() << why_not;
  EXPECT_THROW(cuda_check(cudaFuncSetAttribute(nullptr, cudaFuncAttributeMaxDynamicSharedMemorySize, 0), "a bad call"),
               DeviceError);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

}  // namespace
}  // namespace gradring::kernels
