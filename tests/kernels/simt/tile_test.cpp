// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kernels/simt/engine/sanitizer.h"
#include "kernels/simt/error.h"
#include "tests/kernels/simt/device_fixture.h"
#include "tests/kernels/simt/tile_kernels.h"

namespace gradring::simt_test {
namespace {

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

TEST_P(Tile, RefusesMisalignedTiles) {
  const kernels::Buffer a = random_tile<kernels::Half>(300, 1);
  const kernels::Buffer c = device_.allocate(256 * sizeof(float), MemoryKind::device);
  try {
    multiply_tile(*stream_, 16, 16, Layout::row_major, Layout::row_major, a.as<kernels::Half>() + 8,
                  a.as<kernels::Half>(), c.as<float>());
    FAIL() << "a tile at an address that is no multiple of 32 was accepted";
  } catch (const simt::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("tile_kernels.cu:"));
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
