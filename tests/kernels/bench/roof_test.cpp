// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/roof.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/bench/evict.h"

namespace gradring::kernels::bench {
namespace {

TEST(Roof, IsTheSlowerOfMovingAndComputing) {
  Roof roof;
  const double flops = roof.flops_per_second();
  const double bytes = roof.bytes_per_second(4096, false);
  ASSERT_GT(flops, 0);
  ASSERT_GT(bytes, 0);
  EXPECT_EQ(roof.flops_per_second(), flops) << "measured once";
  EXPECT_EQ(roof.bytes_per_second(3000, false), bytes) << "of the next power of two";
  EXPECT_EQ(roof.seconds({.footprint_bytes = 4096, .traffic_bytes = 4096, .flops = 0}, false), 4096 / bytes);
  EXPECT_EQ(roof.seconds({.footprint_bytes = 4096, .traffic_bytes = 0, .flops = 1e9}, false), 1e9 / flops);
}

TEST(Evict, KeepsWhatWasWritten) {
  std::vector<std::byte> bytes(1001, std::byte{7});
  evict(bytes);
  evict({});
  EXPECT_EQ(bytes, std::vector<std::byte>(1001, std::byte{7}));
}

}  // namespace
}  // namespace gradring::kernels::bench
