// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/launch_resources.h"

#include <gtest/gtest.h>

#include "kernels/runtime/error.h"

namespace gradring::kernels {
namespace {

TEST(LaunchResources, OfWhatIsNoKernelAreRefused) {
  const int no_kernel = 0;
  EXPECT_THROW(launch_resources(&no_kernel, 32, 0), DeviceError);
}

}  // namespace
}  // namespace gradring::kernels
