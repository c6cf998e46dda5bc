// SPDX-License-Identifier: Apache-2.0
#include "nn/layers/layer.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "nn/models/model.h"

namespace gradring::nn {
namespace {

Shape output_shape(const Layer& layer, const Shape& input) { return output_of(layer, input).shape; }

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

TEST(Layer, RejectsInputsThatDoNotFit) {
  EXPECT_THROW(output_shape(Conv2d{.in_channels = 3, .out_channels = 8, .kernel = 3}, {8, 28, 28, 1}), InvalidArgument);
  EXPECT_THROW(output_shape(Conv2d{.in_channels = 1, .out_channels = 8, .kernel = 5}, {8, 4, 4, 1}), InvalidArgument);
  EXPECT_THROW(output_shape(MaxPool2d{}, {8, 1, 4, 1}), InvalidArgument);
  EXPECT_THROW(output_shape(Linear{.in_features = 7, .out_features = 2}, {8, 6}), InvalidArgument);
}

/// The last weight of a model for images of 2 x 3 pixels with 5 channels.
Parameter last_weight(std::vector<NamedLayer> layers) {
  const auto parameters =
      parameters_of(Model{.name = "m", .sample = {2, 3, 5}, .classes = 4, .layers = std::move(layers)});
  return parameters.at(parameters.size() - 2);
}

TEST(Layer, LinearColumnsFollowTheChannelsOfTheFlattenedImage) {
  const Linear linear{.in_features = 30, .out_features = 4};
  for (const Parameter& weight :
       {last_weight({{"a", Flatten{}}, {"b", linear}}), last_weight({{"a", Flatten{}}, {"b", Relu{}}, {"c", linear}}),
        last_weight({{"a", Relu{}}, {"b", Flatten{}}, {"c", linear}})}) {
    EXPECT_EQ(weight.channels, 5);
    EXPECT_EQ(weight.positions, 6);
  }
  const Parameter after_linear =
      last_weight({{"a", Flatten{}}, {"b", linear}, {"c", Linear{.in_features = 4, .out_features = 4}}});
  EXPECT_EQ(after_linear.name, "c.weight");
  EXPECT_EQ(after_linear.positions, 1);
}

}  // namespace
}  // namespace gradring::nn
