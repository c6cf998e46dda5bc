// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// y = x w^T [+ b]: x [n, in], w [out, in], b [out].
struct Linear {
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
  bool bias = true;
  Init init = Init::standard;

  static constexpr std::string_view kKind = "linear";
  static constexpr std::string_view kTorchAttribute = "fc";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return std::to_string(in_features) + "->" + std::to_string(out_features); }
  std::string torch_module() const {
    return "Linear(" + std::to_string(in_features) + ", " + std::to_string(out_features) +
           (bias ? ")" : ", bias=False)");
  }

  /// From a model file, where `input` is what it reads.
  static Linear read(LayerKeys& keys, const Activations& input) {
    static constexpr Init kInits[] = {Init::standard, Init::unit_variance};
    check_input(input.shape.rank() == 2, kKind, input.shape, "[n, features]: flatten comes before");
    const Linear layer = {.in_features = input.shape[1],
                          .out_features = keys.integer("out", 1),
                          .bias = keys.flag("bias", true),
                          .init = read_init(keys, kInits)};
    check_deviation(layer.init, {layer.in_features, layer.out_features});
    return layer;
  }

  Activations output(const Activations& input) const {
    const Shape& x = input.shape;
    check_input(x.rank() == 2 && x[1] == in_features, kKind, x, "[n, " + std::to_string(in_features) + "]");
    return Shape{x[0], out_features};
  }
  std::int64_t multiplications() const { return in_features; }

  std::vector<Parameter> parameters(const Activations& input) const {
    return weight_and_bias(bias, {.shape = {out_features, in_features},
                                  .torch_shape = {out_features, in_features},
                                  .init = init,
                                  .channels = input.channels,
                                  .positions = in_features / input.channels});
  }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const { return {{"Gemm", {{"transB", 1}}}}; }
};

}  // namespace gradring::nn
