// SPDX-License-Identifier: Apache-2.0
// Compiled twice: with the processor's own stack switch, and with the portable one.
#include "kernels/simt/engine/fiber.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/simt/engine/sanitizer.h"

namespace gradring::simt::detail {
namespace {

Context host, guest;
std::vector<double> trace;

/// Keeps values in registers across switches, whole and floating, more than there are.
void visit() {
  double a = 1.5, b = 2.5, c = 3.5, d = 4.5, e = 5.5, f = 6.5, g = 7.5, h = 8.5;
  for (long round = 1;; ++round) {
    trace.push_back(a + b + c + d + e + f + g + h + static_cast<double>(round));
    switch_context(guest, host);
    a *= 2, b *= 2, c *= 2, d *= 2, e *= 2, f *= 2, g *= 2, h *= 2;
  }
}

TEST(Context, ResumesWhereItParked) {
  if (kAddressSanitizer || kThreadSanitizer)
    GTEST_SKIP() << "sanitizers must be told of switches; Block does, this test not";
  trace.clear();
  std::vector<char> stack(256 * 1024);
  guest = make_context(stack.data(), stack.size(), &visit);
  double mine = std::sqrt(2.0);
  for (int round = 1; round <= 4; ++round) {
    switch_context(host, guest);
    mine *= 2;
    ASSERT_EQ(trace.size(), static_cast<std::size_t>(round));
  }
  EXPECT_THAT(trace, testing::ElementsAre(41.0, 82.0, 163.0, 324.0));
  EXPECT_EQ(mine, 16 * std::sqrt(2.0));
}

TEST(Context, StartsOnAnAlignedStack) {
  if (kAddressSanitizer || kThreadSanitizer)
    GTEST_SKIP() << "sanitizers must be told of switches; Block does, this test not";
  static std::uintptr_t address;
  std::vector<char> stack(256 * 1024);
  for (std::size_t offset = 0; offset < 16; ++offset) {
    guest = make_context(stack.data() + offset, stack.size() - 16, [] {
      alignas(16) volatile char aligned[16] = {};
      address = reinterpret_cast<std::uintptr_t>(&aligned);
      switch_context(guest, host);
    });
    switch_context(host, guest);
    EXPECT_EQ(address % 16, 0u);
    EXPECT_TRUE(address > reinterpret_cast<std::uintptr_t>(stack.data()) &&
                address < reinterpret_cast<std::uintptr_t>(stack.data() + stack.size()));
  }
}

}  // namespace
}  // namespace gradring::simt::detail
