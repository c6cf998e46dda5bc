// SPDX-License-Identifier: Apache-2.0
#include "nn/layers/layer.h"

#include "kernels/runtime/error.h"
#include "nn/layers/overloaded.h"

namespace gradring::nn {
namespace {

void expect(bool condition, std::string_view layer, const Shape& input, std::string_view wanted) {
  check(condition, std::string(layer) + " wants " + std::string(wanted) + ", not " + input.to_string());
}

Shape output_of(const Conv2d& conv, const Shape& input) {
  expect(input.rank() == 4 && input[3] == conv.in_channels, "conv2d", input,
         "[n, h, w, " + std::to_string(conv.in_channels) + "]");
  const std::int64_t height = input[1] + 2 * conv.padding;
  const std::int64_t width = input[2] + 2 * conv.padding;
  expect(height >= conv.kernel && width >= conv.kernel, "conv2d", input, "an image no smaller than its window");
  return {input[0], (height - conv.kernel) / conv.stride + 1, (width - conv.kernel) / conv.stride + 1,
          conv.out_channels};
}

Shape output_of(const MaxPool2d& pool, const Shape& input) {
  expect(input.rank() == 4 && input[1] >= pool.window && input[2] >= pool.window, "max_pool2d", input,
         "[n, h, w, c] no smaller than its window");
  return {input[0], (input[1] - pool.window) / pool.stride + 1, (input[2] - pool.window) / pool.stride + 1, input[3]};
}

Shape output_of(const Flatten&, const Shape& input) {
  expect(input.rank() >= 1, "flatten", input, "a batch of anything");
  return {input[0], input.with_batch(1).elements()};
}

Shape output_of(const Linear& linear, const Shape& input) {
  expect(input.rank() == 2 && input[1] == linear.in_features, "linear", input,
         "[n, " + std::to_string(linear.in_features) + "]");
  return {input[0], linear.out_features};
}

Shape output_of(const Relu&, const Shape& input) { return input; }

}  // namespace

std::string_view kind_of(const Layer& layer) {
  return std::visit(Overloaded{[](const Conv2d&) { return std::string_view("conv2d"); },
                               [](const Relu&) { return std::string_view("relu"); },
                               [](const MaxPool2d&) { return std::string_view("max_pool2d"); },
                               [](const Flatten&) { return std::string_view("flatten"); },
                               [](const Linear&) { return std::string_view("linear"); }},
                    layer);
}

Shape output_shape(const Layer& layer, const Shape& input) {
  return std::visit([&](const auto& one) { return output_of(one, input); }, layer);
}

}  // namespace gradring::nn
