// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// y = the maximum of each window, NHWC, padded with -infinity; rows and columns that fill no whole window are dropped.
struct MaxPool2d {
  std::int64_t window = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;

  static constexpr std::int64_t kMostWindow = 16;  ///< a position in a window takes a byte
  static constexpr std::string_view kKind = "max_pool2d";
  static constexpr std::string_view kTorchAttribute = "pool";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return std::to_string(window); }
  std::string torch_module() const {
    return "MaxPool2d(" + std::to_string(window) + ", stride=" + std::to_string(stride) +
           (padding == 0 ? ")" : ", padding=" + std::to_string(padding) + ")");
  }

  /// From a model file, where `input` is what it reads.
  static MaxPool2d read(LayerKeys& keys, const Activations&) {
    const std::int64_t window = keys.integer("kernel", 1);
    const MaxPool2d layer = {.window = window,
                             .stride = keys.integer("stride", 1, window),
                             .padding = keys.integer("padding", 0, 0, window / 2)};
    check(window <= kMostWindow, [&] {
      return "max_pool2d has windows of at most " + std::to_string(kMostWindow) + " x " + std::to_string(kMostWindow) +
             ", but 'kernel' is " + std::to_string(window);
    });
    return layer;
  }

  Activations output(const Activations& input) const {
    return windows_of(kKind, input.shape, window, stride, padding, input.channels);
  }
  std::int64_t multiplications() const { return window * window; }

  std::vector<Parameter> parameters(const Activations&) const { return {}; }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const {
    return {{"MaxPool",
             {{"kernel_shape", std::vector{window, window}},
              {"strides", std::vector{stride, stride}},
              {"pads", std::vector(4, padding)}}}};
  }
};

}  // namespace gradring::nn
