// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/arithmetic_roof.h"

#include <gtest/gtest.h>

#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_device.h"

namespace gradring::kernels::bench {
namespace {

TEST(ArithmeticRoof, MeasuresEveryTypeOnce) {
  HostDevice device;
  const KernelSet kernels = kernel_set();
  ArithmeticRoof roof(device, kernels);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const double flops = roof.flops_per_second(dtype);
    EXPECT_GT(flops, 0) << name_of(dtype);
    EXPECT_EQ(roof.flops_per_second(dtype), flops) << "measured once";
  }
  EXPECT_THROW(roof.flops_per_second(DType::i32), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::bench
