// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/drawing.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace gradring::train::page {
namespace {

struct Placed {
  double begin, end, line;
  int row;
};

TEST(MarkLabels, AreInTheFirstRowWithoutNeighbours) {
  MarkLabels labels(3, 2);
  EXPECT_EQ(labels.add(10, "kill")->row, 0);
  EXPECT_EQ(labels.add(30, "kill")->row, 0);
  const auto last = labels.add(95, "kill");
  EXPECT_TRUE(last->is_left);
  EXPECT_EQ(last->row, 0);
}

TEST(MarkLabels, GoDownWhereOneCoversTheLine) {
  MarkLabels labels(3, 2);
  EXPECT_EQ(labels.add(10, "delay, rank 1")->row, 0);
  EXPECT_EQ(labels.add(30, "restart 1")->row, 1);
  EXPECT_EQ(labels.add(40, "kill, rank 1")->row, 2) << "row 0 is free, but its line would cross restart 1";
  EXPECT_FALSE(labels.add(42, "another")) << "all rows are taken";
}

TEST(MarkLabels, NeverOverlapOrCross) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (int chart = 0; chart < 200; ++chart) {
    MarkLabels labels(3, 2);
    std::vector<Placed> placed;
    for (double x = 0; x < 100; x += std::uniform_real_distribution<>(0, 20)(random)) {
      const std::string label(std::uniform_int_distribution<std::size_t>(1, 20)(random), 'x');
      const auto place = labels.add(x, label);
      if (!place) continue;
      const double width = 2 * static_cast<double>(label.size() + 1);
      placed.push_back({.begin = place->is_left ? x - width : x,
                        .end = place->is_left ? x : x + width,
                        .line = x,
                        .row = place->row});
    }
    for (std::size_t i = 0; i < placed.size(); ++i)
      for (std::size_t k = 0; k < placed.size(); ++k) {
        const Placed &a = placed[i], &b = placed[k];
        if (i == k) continue;
        EXPECT_FALSE(a.row == b.row && a.begin < b.end && b.begin < a.end) << "seed " << kSeed << ", chart " << chart;
        EXPECT_FALSE(a.begin < b.line && b.line < a.end && b.row <= a.row) << "seed " << kSeed << ", chart " << chart;
      }
  }
}

}  // namespace
}  // namespace gradring::train::page
