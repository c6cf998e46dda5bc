// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/simt/engine/error.h"
#include "kernels/simt/engine/sanitizer.h"
#include "tests/kernels/simt/device_fixture.h"
#include "tests/kernels/simt/kernels.h"

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

TEST_P(Warp, HalvesWorkIndependently) {
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

using kernels::MemoryKind;

class Tile : public EachOrder {
 protected:
  /// Small eighths: their products and sums are exact in binary32, and these sums in binary16 too.
  template <class Narrow>
  kernels::Buffer random_tile(std::size_t elements, unsigned seed) {
    kernels::Buffer buffer = device_.allocate(elements * sizeof(Narrow), MemoryKind::device);
    std::minstd_rand random(seed);
    for (std::size_t i = 0; i < elements; ++i) {
      const float value = static_cast<float>(static_cast<int>(random() % 9) - 4) / 8.0f;
      if constexpr (std::is_same_v<Narrow, kernels::Half>)
        buffer.as<Narrow>()[i] = kernels::to_half(value);
      else
        buffer.as<Narrow>()[i] = kernels::to_bfloat16(value);
    }
    return buffer;
  }
};
SIMT_IN_EACH_ORDER(Tile);

constexpr int kInner = 16;

/// (a b)[row, column] + start.
template <class Narrow>
float product(const Narrow* a, const Narrow* b, int m, int n, Layout a_layout, Layout b_layout, int row, int column,
              float start) {
  float sum = start;
  for (int k = 0; k < kInner; ++k)
    sum += to_float(a[a_layout == Layout::row_major ? row * kInner + k : k * m + row]) *
           to_float(b[b_layout == Layout::row_major ? k * n + column : column * kInner + k]);
  return sum;
}

TEST_P(Tile, MultipliesInEveryShapeAndLayout) {
  for (const auto& [m, n] : {std::pair{16, 16}, {32, 8}, {8, 32}})
    for (const Layout a_layout : {Layout::row_major, Layout::col_major})
      for (const Layout b_layout : {Layout::row_major, Layout::col_major}) {
        const kernels::Buffer a = random_tile<kernels::Half>(static_cast<std::size_t>(m * kInner), 1);
        const kernels::Buffer b = random_tile<kernels::Half>(static_cast<std::size_t>(n * kInner), 2);
        const kernels::Buffer c = device_.allocate(static_cast<std::size_t>(m * n) * sizeof(float), MemoryKind::device);
        std::fill_n(c.as<float>(), m * n, 3.0f);
        multiply_tile(*stream_, m, n, a_layout, b_layout, a.as<kernels::Half>(), b.as<kernels::Half>(), c.as<float>());
        for (int row = 0; row < m; ++row)
          for (int column = 0; column < n; ++column)
            ASSERT_EQ(c.as<float>()[row * n + column], product(a.as<kernels::Half>(), b.as<kernels::Half>(), m, n,
                                                               a_layout, b_layout, row, column, 3.0f))
                << m << "x" << n << " [" << row << "," << column << "]";
      }
}

TEST_P(Tile, MultipliesBfloat16IntoFloatAndHalfIntoHalf) {
  constexpr Layout kRows = Layout::row_major;
  const kernels::Buffer a = random_tile<kernels::BFloat16>(256, 3), b = random_tile<kernels::BFloat16>(256, 4);
  const kernels::Buffer x = random_tile<kernels::Half>(256, 5), y = random_tile<kernels::Half>(256, 6);
  const kernels::Buffer c = device_.allocate(256 * sizeof(float), MemoryKind::device);
  const kernels::Buffer z = device_.allocate(256 * sizeof(kernels::Half), MemoryKind::device);
  std::fill_n(c.as<float>(), 256, 0.0f);
  std::fill_n(z.as<kernels::Half>(), 256, kernels::Half{});
  multiply_brain_tile(*stream_, a.as<kernels::BFloat16>(), b.as<kernels::BFloat16>(), c.as<float>());
  multiply_half_tile(*stream_, x.as<kernels::Half>(), y.as<kernels::Half>(), z.as<kernels::Half>());
  for (int i = 0; i < 256; ++i) {
    ASSERT_EQ(c.as<float>()[i], product(a.as<kernels::BFloat16>(), b.as<kernels::BFloat16>(), 16, 16, kRows, kRows,
                                        i / 16, i % 16, 0.0f));
    ASSERT_EQ(to_float(z.as<kernels::Half>()[i]),
              product(x.as<kernels::Half>(), y.as<kernels::Half>(), 16, 16, kRows, kRows, i / 16, i % 16, 0.0f));
  }
}

TEST_P(Tile, RejectsMisalignedTiles) {
  const kernels::Buffer a = random_tile<kernels::Half>(300, 1);
  const kernels::Buffer c = device_.allocate(256 * sizeof(float), MemoryKind::device);
  try {
    multiply_tile(*stream_, 16, 16, Layout::row_major, Layout::row_major, a.as<kernels::Half>() + 8,
                  a.as<kernels::Half>(), c.as<float>());
    FAIL() << "a tile at an address that is no multiple of 32 was accepted";
  } catch (const simt::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("kernels.cu:"));
  }
}

class AsyncCopy : public EachOrder {
 protected:
  /// Whether staged_sum gives the right result.
  bool staged_sum_is_right(bool wait) {
    constexpr int kTiles = 4, kQuads = kTiles * 64;
    const kernels::Buffer quads = device_.allocate(kQuads * 16, MemoryKind::device);
    for (int quad = 0; quad < kQuads; ++quad) std::fill_n(quads.as<float>() + quad * 4, 4, static_cast<float>(quad));
    float y[64];
    staged_sum(*stream_, quads.as<float>(), y, kTiles, wait);
    for (int t = 0; t < 64; ++t)
      if (y[t] != static_cast<float>(4 * (63 - t) + 64 * 6)) return false;
    return true;
  }
};
SIMT_IN_EACH_ORDER(AsyncCopy);

TEST_P(AsyncCopy, LandsBeforeTheWaitReturns) { EXPECT_TRUE(staged_sum_is_right(true)); }

TEST_P(AsyncCopy, MissingWaitGivesAWrongResult) { EXPECT_FALSE(staged_sum_is_right(false)); }

}  // namespace
}  // namespace gradring::simt_test
