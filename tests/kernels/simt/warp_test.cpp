// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/kernels/simt/device_fixture.h"
#include "tests/kernels/simt/warp_kernels.h"

namespace gradring::simt_test {
namespace {

class Warp : public EachOrder {};
SIMT_IN_EACH_ORDER(Warp);

TEST_P(Warp, ShufflesVotesAndReduces) {
  constexpr int kThreads = 96;
  std::vector<WarpResults> results(kThreads);
  exercise_warps(*stream_, kThreads, results.data());
  for (int thread = 0; thread < kThreads; ++thread) {
    SCOPED_TRACE(thread);
    const WarpResults& got = results[static_cast<std::size_t>(thread)];
    const int lane = thread % 32, first = thread - lane;
    EXPECT_EQ(got.broadcast, first + 3);
    EXPECT_EQ(got.rotated, thread / 8 * 8 + (lane + 1) % 8);
    EXPECT_EQ(got.butterfly, thread ^ 5);
    EXPECT_EQ(got.from_above, lane % 16 < 12 ? thread + 4 : thread);
    EXPECT_EQ(got.from_below, lane >= 2 ? thread - 2 : thread);
    EXPECT_EQ(got.wide, (thread ^ 1) + 0.25);
    EXPECT_EQ(got.odd_lanes, 0xaaaaaaaau);
    EXPECT_EQ(got.any_is_7, first == 0);
    EXPECT_EQ(got.all_below_64, first < 64);
    EXPECT_EQ(got.equal_quarter, 0xffu << lane / 8 * 8);
    std::vector<int> mixed(32);
    unsigned bits_and = ~0u, bits_or = 0, bits_xor = 0;
    for (int i = 0; i < 32; ++i) {
      const int other = first + i;
      mixed[static_cast<std::size_t>(i)] = (other - 16) * (other % 2 == 0 ? 1 : -1);
      bits_and &= static_cast<unsigned>(other) | 0x100u;
      bits_or |= static_cast<unsigned>(other);
      bits_xor ^= static_cast<unsigned>(other) * 3;
    }
    EXPECT_EQ(got.sum, std::accumulate(mixed.begin(), mixed.end(), 0));
    EXPECT_EQ(got.least, *std::min_element(mixed.begin(), mixed.end()));
    EXPECT_EQ(got.greatest, *std::max_element(mixed.begin(), mixed.end()));
    EXPECT_EQ(got.bits_and, bits_and);
    EXPECT_EQ(got.bits_or, bits_or);
    EXPECT_EQ(got.bits_xor, bits_xor);
  }
}

TEST_P(Warp, HalvesWorkApart) {
  std::vector<std::int32_t> out(32);
  sum_halves(*stream_, out.data());
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i < 16 ? 120 : 376);
}

TEST_P(Warp, SyncwarpOrdersSharedMemory) {
  std::vector<float> x(32);
  std::iota(x.begin(), x.end(), 1.0f);
  float total = 0.0f;
  sum_with_syncwarp(*stream_, x.data(), &total);
  EXPECT_EQ(total, 528.0f);
}

TEST_P(Warp, FullMaskNamesTheLanesThatExist) {
  for (const unsigned threads : {1u, 7u, 31u, 32u, 45u}) {
    std::uint32_t ballot = 0;
    ballot_in_short_warp(*stream_, threads, &ballot);
    EXPECT_EQ(ballot, threads >= 32 ? ~0u : (1u << threads) - 1);
  }
}

}  // namespace
}  // namespace gradring::simt_test
