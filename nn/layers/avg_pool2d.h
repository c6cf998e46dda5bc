// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// y = the mean of each window, NHWC, padded with zeros, which count; rows and columns that fill no whole window are
/// dropped.
struct AvgPool2d {
  std::int64_t window = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;

  static constexpr std::string_view kKind = "avg_pool2d";
  static constexpr std::string_view kTorchAttribute = "pool";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return std::to_string(window); }
  std::string torch_module() const {
    return "AvgPool2d(" + std::to_string(window) + ", stride=" + std::to_string(stride) +
           (padding == 0 ? ")" : ", padding=" + std::to_string(padding) + ")");
  }

  /// From a model file, where `input` is what it reads.
  static AvgPool2d read(LayerKeys& keys, const Activations&) {
    const std::int64_t window = keys.integer("kernel", 1);
    return {.window = window,
            .stride = keys.integer("stride", 1, window),
            .padding = keys.integer("padding", 0, 0, window / 2)};
  }

  Activations output(const Activations& input) const {
    return windows_of(kKind, input.shape, window, stride, padding, input.channels);
  }
  std::int64_t multiplications() const { return window * window; }

  std::vector<Parameter> parameters(const Activations&) const { return {}; }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const {
    return {{"AveragePool",
             {{"kernel_shape", std::vector{window, window}},
              {"strides", std::vector{stride, stride}},
              {"pads", std::vector(4, padding)},
              {"count_include_pad", 1}}}};
  }
};

/// y = the mean of each channel of a sample: [n, h, w, c] -> [n, 1, 1, c].
struct GlobalAvgPool2d {
  static constexpr std::string_view kKind = "global_avg_pool2d";
  static constexpr std::string_view kTorchAttribute = "avgpool";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return {}; }
  std::string torch_module() const { return "AdaptiveAvgPool2d(1)"; }

  static GlobalAvgPool2d read(LayerKeys&, const Activations&) { return {}; }
  Activations output(const Activations& input) const {
    check_input(input.shape.rank() == 4, kKind, input.shape, "[n, h, w, c]");
    return Shape{input.shape[0], 1, 1, input.shape[3]};
  }
  std::int64_t multiplications() const { return 1; }

  std::vector<Parameter> parameters(const Activations&) const { return {}; }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const { return {{"GlobalAveragePool"}}; }
};

}  // namespace gradring::nn
