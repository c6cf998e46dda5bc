// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// y = conv(x, w) [+ b]: square windows, NHWC activations, OHWI weights,
/// channels in groups.
struct Conv2d {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;  ///< of channels, which see nothing of each other; in_channels: depthwise
  bool bias = true;
  Init init = Init::standard;

  static constexpr std::int64_t kMostWhitened = 4;  ///< kernel of Init::whitening: its cost grows with kernel^4
  static constexpr std::string_view kKind = "conv2d";
  static constexpr std::string_view kTorchAttribute = "conv";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return std::to_string(in_channels) + "->" + std::to_string(out_channels); }
  std::string torch_module() const {
    return "Conv2d(" + std::to_string(in_channels) + ", " + std::to_string(out_channels) + ", " +
           std::to_string(kernel) + ", stride=" + std::to_string(stride) + ", padding=" + std::to_string(padding) +
           (groups == 1 ? "" : ", groups=" + std::to_string(groups)) + (bias ? ")" : ", bias=False)");
  }

  /// From a model file, where `input` is what it reads.
  static Conv2d read(LayerKeys& keys, const Activations& input) {
    static constexpr Init kInits[] = {Init::standard, Init::dirac, Init::unit_variance, Init::whitening};
    check_input(input.shape.rank() == 4, kKind, input.shape, "[n, h, w, c]");
    const Conv2d layer = {.in_channels = input.shape[3],
                          .out_channels = keys.integer("out", 1),
                          .kernel = keys.integer("kernel", 1),
                          .stride = keys.integer("stride", 1, 1),
                          .padding = keys.integer("padding", 0, 0),
                          .groups = keys.integer("groups", 1, 1),
                          .bias = keys.flag("bias", true),
                          .init = read_init(keys, kInits)};
    layer.check_init();
    return layer;
  }

  Activations output(const Activations& input) const {
    const Shape& x = input.shape;
    check_input(x.rank() == 4 && x[3] == in_channels, kKind, x, "[n, h, w, " + std::to_string(in_channels) + "]");
    check(groups >= 1 && in_channels % groups == 0 && out_channels % groups == 0, [&] {
      return "conv2d has " + std::to_string(groups) + " groups, expected a divisor of its " +
             std::to_string(in_channels) + " and " + std::to_string(out_channels) + " channels";
    });
    return windows_of(kKind, x, kernel, stride, padding, out_channels);
  }
  std::int64_t multiplications() const { return kernel * kernel * in_channels / groups; }

  std::vector<Parameter> parameters(const Activations&) const {
    return weight_and_bias(bias, {.shape = {out_channels, kernel, kernel, in_channels / groups},
                                  .torch_shape = {out_channels, in_channels / groups, kernel, kernel},
                                  .init = init,
                                  .channels = in_channels / groups,
                                  .positions = kernel * kernel});
  }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const {
    return {{"Conv",
             {{"kernel_shape", std::vector{kernel, kernel}},
              {"group", groups},
              {"strides", std::vector{stride, stride}},
              {"pads", std::vector{padding, padding, padding, padding}}}}};
  }

 private:
  /// Errors    InvalidArgument if it has no initial weights of that kind.
  void check_init() const {
    check(groups == 1 || init == Init::standard || init == Init::unit_variance,
          [&] { return "the initial weights are not for " + std::to_string(groups) + " groups, expected 1"; });
    check_deviation(init, {out_channels, kernel, in_channels / groups});
    if (init != Init::whitening) return;
    check(kernel <= kMostWhitened, [&] {
      return "whitening has kernels of at most " + std::to_string(kMostWhitened) + ", but 'kernel' is " +
             std::to_string(kernel);
    });
    const std::int64_t filters = 2 * kernel * kernel * in_channels;
    check(out_channels == filters, [&] {
      return "whitening has 2 * kernel * kernel * in = " + std::to_string(filters) + " filters, but 'out' is " +
             std::to_string(out_channels);
    });
  }
};

}  // namespace gradring::nn
