// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/device_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/runtime/error.h"

namespace gradring::kernels {
namespace {

TEST(DeviceFailure, ThrowsTheFirstAgainAndAgain) {
  DeviceFailure failure;
  EXPECT_FALSE(failure.happened());
  EXPECT_NO_THROW(failure.rethrow());
  failure.keep(std::make_exception_ptr(DeviceError("the first")));
  failure.keep(std::make_exception_ptr(DeviceError("the second")));
  EXPECT_TRUE(failure.happened());
  for (int again = 0; again < 2; ++again) {
    try {
      failure.rethrow();
      FAIL() << "the error was lost";
    } catch (const DeviceError& error) {
      EXPECT_STREQ(error.what(), "the first");
    }
  }
}

}  // namespace
}  // namespace gradring::kernels
