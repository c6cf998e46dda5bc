// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/host_work.h"

#include <gtest/gtest.h>

#include "kernels/runtime/cuda/device_count.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels {
namespace {

TEST(HostWork, DropsWhatTheStreamDoesNotTake) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "a GPU takes it";
  const auto held = std::make_shared<int>(1);
  HostWork work(std::make_shared<DeviceFailure>());
  EXPECT_THROW(work.enqueue([held] { ADD_FAILURE() << "ran"; }, nullptr), DeviceError);
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace gradring::kernels
