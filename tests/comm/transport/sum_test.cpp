// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mapped/sum.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "kernels/runtime/error.h"
#include "kernels/runtime/half.h"

namespace gradring::comm {
namespace {

using kernels::DType;

template <class T>
std::vector<T> sum_of(std::vector<T> a, const std::vector<T>& b) {
  add_into(reinterpret_cast<std::byte*>(a.data()), reinterpret_cast<const std::byte*>(b.data()), a.size(),
           kernels::dtype_of<T>);
  return a;
}

TEST(Sum, HalvesAreAddedInFloatAndRoundedToNearestEven) {
  // Every pair of a stride through all bit patterns, infinities and NaNs among them.
  std::vector<kernels::Half> a, b;
  for (std::uint32_t x = 0; x < 0x10000; x += 97)
    for (std::uint32_t y = 0; y < 0x10000; y += 331) {
      a.push_back({static_cast<std::uint16_t>(x)});
      b.push_back({static_cast<std::uint16_t>(y)});
    }
  const auto sums = sum_of(a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float exact = to_float(a[i]) + to_float(b[i]);
    if (exact != exact)
      ASSERT_TRUE(to_float(sums[i]) != to_float(sums[i]));
    else
      ASSERT_EQ(sums[i].bits, kernels::to_half(exact).bits) << a[i].bits << " + " << b[i].bits;
  }
}

TEST(Sum, BFloatsAreAddedInFloat) {
  const auto b = [](float value) { return kernels::to_bfloat16(value); };
  const auto sums = sum_of<kernels::BFloat16>({b(1), b(256), b(-3)}, {b(2), b(1), b(3)});
  EXPECT_EQ(to_float(sums[0]), 3);
  EXPECT_EQ(to_float(sums[1]), 256);  // 257 lies between 256 and 258: to even
  EXPECT_EQ(to_float(sums[2]), 0);
}

TEST(Sum, WholeNumbersWrapAround) {
  constexpr auto kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(sum_of<std::int32_t>({kMax, 5}, {1, -7}),
            (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(), -2}));
  EXPECT_EQ(sum_of<std::int64_t>({1ll << 40}, {1}), (std::vector<std::int64_t>{(1ll << 40) + 1}));
}

TEST(Sum, BytesHaveNone) {
  EXPECT_FALSE(has_sum(DType::u8));
  EXPECT_THROW(sum_of<std::uint8_t>({1}, {1}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::comm
