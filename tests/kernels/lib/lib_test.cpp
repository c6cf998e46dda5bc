// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/kernels/lib/kernels.h"
#include "tests/support/each_stream.h"

namespace gradring::tests {
namespace {

/// 1, 2, 3, ...: sums of them are exact in f32 as long as these tests are short.
std::vector<float> counting(std::size_t elements) {
  std::vector<float> values(elements);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(BlockSum, AddsEveryColumnOfEveryBlock) {
  constexpr unsigned kBlocks = 5;
  const std::vector<float> values = counting(64 * kBlocks * 3);
  for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
    std::vector<float> sums(kBlocks * 3, -1);
    add_blocks(stream, values.data(), sums.data(), kBlocks);
    finish(stream);
    for (unsigned b = 0; b < kBlocks; ++b)
      for (unsigned j = 0; j < 3; ++j) {
        float expected = 0;
        for (unsigned row = 64 * b; row < 64 * (b + 1); ++row) expected += values[3 * row + j];
        EXPECT_EQ(sums[3 * b + j], expected) << "block " << b << ", column " << j;
      }
  });
}

TEST(BlockSum, AddsWholeNumbers) {
  std::vector<std::int32_t> values(256);
  std::iota(values.begin(), values.end(), 1 << 20);
  for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
    std::int32_t sum = -1;
    add_block(stream, values.data(), &sum);
    finish(stream);
    EXPECT_EQ(sum, std::accumulate(values.begin(), values.end(), 0));
  });
}

TEST(Rows, VisitEveryElementOnce) {
  const Shape shapes[] = {{1, 1, 1}, {1, 8, 32}, {7, 8, 32}, {3, 3, 5}, {100, 1, 1}};
  for (std::int64_t rows : {0, 1, 33, 1023})
    for (int cols : {1, 7, 33})
      for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
        const std::vector<std::int32_t> once(static_cast<std::size_t>(rows * cols), 1);
        std::vector<std::int32_t> visits(once.size());
        visit_matrix(stream, rows, cols, visits.data());
        finish(stream);
        EXPECT_EQ(visits, once) << "rows_for, " << rows << " x " << cols;
        for (const Shape& shape : shapes) {
          visits.assign(once.size(), 0);
          visit_matrix(stream, shape, rows, cols, visits.data());
          finish(stream);
          EXPECT_EQ(visits, once) << shape.blocks << " blocks of " << shape.warps << " x " << shape.lanes << ", "
                                  << rows << " x " << cols;
        }
      });
}

TEST(Strip, AddsAnyWidthWithoutReadingPastIt) {
  for (int width = 1; width <= 16; ++width)
    for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
      constexpr int kRows = 5;
      const auto columns = static_cast<std::size_t>(width);
      const std::vector<float> x = counting(kRows * columns);
      const std::vector<float> factors = counting(kRows);
      std::vector<float> sums(columns, -2);
      add_strip(stream, x.data(), factors.data(), kRows, width, sums.data());
      finish(stream);
      for (std::size_t j = 0; j < columns; ++j) {
        float expected = 0;
        for (std::size_t row = 0; row < kRows; ++row) expected += (1 + factors[row]) * x[row * columns + j];
        EXPECT_EQ(sums[j], expected) << "column " << j << " of " << width;
      }
    });
}

TEST(Dots, MultiplyAnyLengthWithoutReadingPastIt) {
  for (int rows = 1; rows <= 4; ++rows)
    for (int length : {0, 1, 7, 8, 9, 31, 32, 33})
      for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
        const auto n = static_cast<std::size_t>(length);
        const std::vector<float> x = counting(n);
        const std::vector<float> w = counting(n * static_cast<std::size_t>(rows));
        std::vector<float> dots(static_cast<std::size_t>(rows), -1);
        multiply_dots(stream, x.data(), w.data(), rows, length, dots.data());
        finish(stream);
        for (std::size_t r = 0; r < dots.size(); ++r)
          EXPECT_EQ(dots[r],
                    std::inner_product(x.begin(), x.end(), w.begin() + static_cast<std::ptrdiff_t>(r * n), 0.0f))
              << "row " << r << " of " << rows << ", length " << length;
      });
}

TEST(Divisor, DividesAsTheProcessorDoes) {
  constexpr int kMost = std::numeric_limits<int>::max();
  for (int divisor : {1, 2, 3, 5, 7, 9, 13, 26, 32, 169, 641, 65535, 65536, 65537, (1 << 30) - 1, 1 << 30, kMost})
    for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
      std::vector<int> dividends = {0, 1, 2, 3, 1000, 12345678, kMost - 1, kMost};
      for (int multiple = 1; multiple <= kMost / divisor && multiple <= 5; ++multiple)
        for (int off : {-1, 0}) dividends.push_back(multiple * divisor + off);
      dividends.push_back(kMost / divisor * divisor);
      std::vector<int> quotients(dividends.size(), -1), remainders(dividends.size(), -1);
      divide(stream, divisor, dividends.data(), dividends.size(), quotients.data(), remainders.data());
      finish(stream);
      for (std::size_t i = 0; i < dividends.size(); ++i) {
        EXPECT_EQ(quotients[i], dividends[i] / divisor) << dividends[i] << " / " << divisor;
        EXPECT_EQ(remainders[i], dividends[i] % divisor) << dividends[i] << " / " << divisor;
      }
    });
}

TEST(SplitK, SumsAnyNumberOfSlices) {
  constexpr std::int64_t kElements = 5;
  for (int count : {1, 2, 31, 32, 33, 64, 100, 1025})
    for (bool accumulate : {false, true})
      for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
        std::vector<float> slices = counting(static_cast<std::size_t>(count * kElements)), sums(kElements, 1000);
        sum_slices(stream, slices.data(), count, kElements, sums.data(), accumulate);
        finish(stream);
        const float rows = static_cast<float>(count) * (static_cast<float>(count) - 1) / 2 * kElements;
        for (std::size_t i = 0; i < kElements; ++i)
          EXPECT_EQ(sums[i], (accumulate ? 1000 : 0) + rows + static_cast<float>(count) * static_cast<float>(i + 1))
              << count;
      });
}

TEST(SplitK, CutsKIntoSlicesOfWholeTiles) {
  for (std::int64_t k_tiles = 0; k_tiles < 200; ++k_tiles)
    for (std::int64_t wanted : {0, 1, 2, 7, 128}) {
      const int slices = slices_of(k_tiles, wanted, 4);
      const std::int64_t of_slice = (k_tiles + slices - 1) / slices;
      EXPECT_LE(slices, std::max<std::int64_t>(wanted, 1));
      EXPECT_GE(slices * of_slice, k_tiles);
      EXPECT_TRUE(k_tiles == 0 || (slices - 1) * of_slice < k_tiles) << "the last slice is empty: " << k_tiles;
      EXPECT_TRUE(slices == 1 || of_slice >= 4) << k_tiles;
    }
}

}  // namespace
}  // namespace gradring::tests
