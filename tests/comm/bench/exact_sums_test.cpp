// SPDX-License-Identifier: Apache-2.0
#include "comm/bench/all_reduce_bench.h"

#include <gtest/gtest.h>

#include <vector>

#include "comm/transport/sum.h"
#include "kernels/base/error.h"

namespace gradring::comm::bench {
namespace {

using kernels::DType;

constexpr DType kSummed[] = {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64};
constexpr std::size_t kElements = 1000;

/// All ranks' contributions, added one after the other from `first` on.
std::vector<std::byte> added(const ExactSums& sums, DType dtype, int first) {
  std::vector<std::byte> total(kElements * size_of(dtype)), part(total.size());
  for (int hop = 0; hop < sums.world_size; ++hop) {
    sums.fill(part.data(), kElements, dtype, (first + hop) % sums.world_size);
    if (hop == 0)
      total = part;
    else
      add_into(total.data(), part.data(), kElements, dtype);
  }
  return total;
}

TEST(ExactSums, AreExactInEveryTypeAndOrder) {
  for (const int world : {1, 2, 3, 8, 17, 100, 256})
    for (const DType dtype : kSummed)
      for (const int first : {0, world / 2, world - 1}) {
        const ExactSums sums{.world_size = world};
        EXPECT_EQ(sums.count_wrong(added(sums, dtype, first).data(), kElements, dtype), 0u)
            << world << " ranks, " << name_of(dtype);
      }
}

TEST(ExactSums, CountsASingleWrongElement) {
  for (const DType dtype : kSummed) {
    const ExactSums sums{.world_size = 3};
    auto total = added(sums, dtype, 0);
    const std::size_t at = 777 * size_of(dtype) + size_of(dtype) - 1;
    total[at] ^= std::byte{0x10};
    EXPECT_EQ(sums.count_wrong(total.data(), kElements, dtype), 1u) << name_of(dtype);
  }
}

TEST(ExactSums, DetectsAMissingRank) {
  const ExactSums all{.world_size = 4}, fewer{.world_size = 3};
  EXPECT_GT(all.count_wrong(added(fewer, DType::f32, 0).data(), kElements, DType::f32), kElements / 2);
}

TEST(ExactSums, RejectsU8) {
  std::byte byte{};
  EXPECT_THROW(ExactSums().fill(&byte, 1, DType::u8, 0), InvalidArgument);
}

}  // namespace
}  // namespace gradring::comm::bench
