// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/bench/machine.h"
#include "kernels/host/host_device.h"

namespace gradring::kernels::bench {
namespace {

TEST(CpuRoofline, TakesTheSlowerOfMemoryAndArithmetic) {
  CpuRoofline roof;
  const double flops = roof.flops_per_second();
  const double bytes = roof.bytes_per_second(4096, false);
  ASSERT_GT(flops, 0);
  ASSERT_GT(bytes, 0);
  EXPECT_EQ(roof.flops_per_second(), flops) << "measured once";
  EXPECT_EQ(roof.bytes_per_second(3000, false), bytes) << "of the next power of two";
  EXPECT_EQ(roof.seconds({.footprint_bytes = 4096, .traffic_bytes = 4096, .flops = 0}, false), 4096 / bytes);
  EXPECT_EQ(roof.seconds({.footprint_bytes = 4096, .traffic_bytes = 0, .flops = 1e9}, false), 1e9 / flops);
}

TEST(Evict, KeepsTheContents) {
  std::vector<std::byte> bytes(1001, std::byte{7});
  evict(bytes);
  evict({});
  EXPECT_EQ(bytes, std::vector<std::byte>(1001, std::byte{7}));
}

TEST(PeakFlops, MeasuresEveryTypeOnce) {
  HostDevice device;
  const KernelSet kernels = kernel_set();
  PeakFlops peak(device, kernels);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const double flops = peak.per_second(dtype);
    EXPECT_GT(flops, 0) << name_of(dtype);
    EXPECT_EQ(peak.per_second(dtype), flops) << "measured once";
  }
  EXPECT_THROW(peak.per_second(DType::i32), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::bench
