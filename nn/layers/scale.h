// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// y = x * factor, a constant.
struct Scale {
  float factor = 1;

  static constexpr std::string_view kKind = "scale";
  static constexpr std::string_view kTorchAttribute = "scale";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return {}; }
  std::string torch_module() const { return "x * " + shortest(factor); }

  /// From a model file: factor / divisor.
  static Scale read(LayerKeys& keys, const Activations&) {
    const double factor = keys.number("factor", -1e6, 1e6, 1);
    return {.factor = static_cast<float>(factor / static_cast<double>(keys.integer("divisor", 1, 1)))};
  }
  Activations output(const Activations& input) const { return input; }
  std::int64_t multiplications() const { return 1; }

  std::vector<Parameter> parameters(const Activations&) const { return {}; }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const { return {{"Mul", {}, {kLayerInput, factor}}}; }
};

}  // namespace gradring::nn
