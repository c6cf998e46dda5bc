// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/sum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/runtime/dtype.h"
#include "tests/comm/support/patterns.h"

namespace gradring::comm {
namespace {

using kernels::DType;

template <class T>
std::vector<T> sum_of(std::vector<T> a, const std::vector<T>& b) {
  add_into(reinterpret_cast<std::byte*>(a.data()), reinterpret_cast<const std::byte*>(b.data()), a.size(),
           kernels::dtype_of<T>);
  return a;
}

TEST(Sum, F16AddsInF32AndRoundsToNearestEven) {
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

TEST(Sum, Bf16AddsInF32) {
  const auto b = [](float value) { return kernels::to_bfloat16(value); };
  const auto sums = sum_of<kernels::BFloat16>({b(1), b(256), b(-3)}, {b(2), b(1), b(3)});
  EXPECT_EQ(to_float(sums[0]), 3);
  EXPECT_EQ(to_float(sums[1]), 256);  // 257 lies between 256 and 258: to even
  EXPECT_EQ(to_float(sums[2]), 0);
}

TEST(Sum, IntegersWrapAround) {
  constexpr auto kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(sum_of<std::int32_t>({kMax, 5}, {1, -7}),
            (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(), -2}));
  EXPECT_EQ(sum_of<std::int64_t>({1ll << 40}, {1}), (std::vector<std::int64_t>{(1ll << 40) + 1}));
}

/// Sums parts rank by rank, as the ring does, and with sum_into_all: bit-identical, and equal at every rank.
template <class T>
void expect_ring_bits(std::size_t ranks, std::size_t elements) {
  constexpr std::uint64_t kSeed = 77;
  std::vector<std::vector<T>> parts(ranks, std::vector<T>(elements));
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < elements; ++i)
      tests::store(reinterpret_cast<std::byte*>(parts[rank].data()), kernels::dtype_of<T>, i,
                   tests::rough_number(kSeed, static_cast<int>(rank), i));
  std::vector<T> expected = parts[1 % ranks];
  for (std::size_t hop = 2; hop <= ranks && ranks > 1; ++hop) expected = sum_of(parts[hop % ranks], expected);

  std::vector<std::byte*> others;
  for (std::size_t rank = 1; rank < ranks; ++rank) others.push_back(reinterpret_cast<std::byte*>(parts[rank].data()));
  sum_into_all(reinterpret_cast<std::byte*>(parts[0].data()), others, elements, kernels::dtype_of<T>);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    EXPECT_TRUE(elements == 0 || std::memcmp(parts[rank].data(), expected.data(), elements * sizeof(T)) == 0)
        << "seed " << kSeed << ", " << name_of(kernels::dtype_of<T>) << ", " << elements << " elements, rank " << rank
        << " of " << ranks;
}

TEST(Sum, SumIntoAllMatchesTheRingBitwise) {
  for (const std::size_t ranks : {1, 2, 3, 4, 7})
    for (const std::size_t elements : {0, 1, 31, 33, 1023, 1024, 1025, 5000}) {
      expect_ring_bits<float>(ranks, elements);
      expect_ring_bits<kernels::Half>(ranks, elements);
      expect_ring_bits<kernels::BFloat16>(ranks, elements);
      expect_ring_bits<std::int32_t>(ranks, elements);
      expect_ring_bits<std::int64_t>(ranks, elements);
    }
}

TEST(Sum, RejectsU8) {
  EXPECT_FALSE(has_sum(DType::u8));
  EXPECT_THROW(sum_of<std::uint8_t>({1}, {1}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::comm
