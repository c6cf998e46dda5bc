// SPDX-License-Identifier: Apache-2.0
#include "nn/layers/layer.h"

#include <gtest/gtest.h>

#include "kernels/runtime/error.h"

namespace gradring::nn {
namespace {

TEST(Layer, ConvolutionsShrinkByTheirWindow) {
  EXPECT_EQ(output_shape(Conv2d{.in_channels = 1, .out_channels = 32, .kernel = 3}, {8, 28, 28, 1}),
            Shape({8, 26, 26, 32}));
  EXPECT_EQ(
      output_shape(Conv2d{.in_channels = 3, .out_channels = 4, .kernel = 3, .stride = 2, .padding = 1}, {2, 9, 8, 3}),
      Shape({2, 5, 4, 4}));
}

TEST(Layer, PoolingDropsWhatFillsNoWindow) {
  EXPECT_EQ(output_shape(MaxPool2d{}, {8, 11, 10, 64}), Shape({8, 5, 5, 64}));
}

TEST(Layer, FlattenKeepsTheBatch) {
  EXPECT_EQ(output_shape(Flatten{}, {8, 5, 5, 64}), Shape({8, 1600}));
  EXPECT_EQ(output_shape(Flatten{}, {0, 5, 5, 64}), Shape({0, 1600}));
}

TEST(Layer, RefusesInputsThatDoNotFit) {
  EXPECT_THROW(output_shape(Conv2d{.in_channels = 3, .out_channels = 8, .kernel = 3}, {8, 28, 28, 1}), InvalidArgument);
  EXPECT_THROW(output_shape(Conv2d{.in_channels = 1, .out_channels = 8, .kernel = 5}, {8, 4, 4, 1}), InvalidArgument);
  EXPECT_THROW(output_shape(MaxPool2d{}, {8, 1, 4, 1}), InvalidArgument);
  EXPECT_THROW(output_shape(Linear{.in_features = 7, .out_features = 2}, {8, 6}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::nn
