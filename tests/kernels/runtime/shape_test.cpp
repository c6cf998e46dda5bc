// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/shape.h"

#include <gtest/gtest.h>

#include "kernels/runtime/error.h"

namespace gradring::kernels {
namespace {

TEST(Shape, MultipliesItsExtents) {
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape({5, 0, 4}).elements(), 0);
  EXPECT_EQ(Shape({}).elements(), 1);
}

TEST(Shape, RefusesWhatCannotBe) {
  EXPECT_THROW(Shape({2, -1}), InvalidArgument);
  EXPECT_THROW(Shape({1, 2, 3, 4, 5, 6, 7}), InvalidArgument);
  EXPECT_THROW(Shape({1ll << 40, 1ll << 40}), InvalidArgument);
  EXPECT_THROW(Shape({3})[1], InvalidArgument);
}

TEST(Shape, ReplacesTheBatchAlone) { EXPECT_EQ(Shape({64, 28, 28, 1}).with_batch(7), Shape({7, 28, 28, 1})); }

TEST(Shape, PrintsAsAList) { EXPECT_EQ(Shape({64, 28, 1}).to_string(), "[64, 28, 1]"); }

}  // namespace
}  // namespace gradring::kernels
