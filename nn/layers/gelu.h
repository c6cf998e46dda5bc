// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// y = x * P(x), P the distribution function of the normal distribution.
struct Gelu {
  static constexpr std::string_view kKind = "gelu";
  static constexpr std::string_view kTorchAttribute = "gelu";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return {}; }
  std::string torch_module() const { return "GELU()"; }

  static Gelu read(LayerKeys&, const Activations&) { return {}; }
  Activations output(const Activations& input) const { return input; }
  std::int64_t multiplications() const { return 8; }

  std::vector<Parameter> parameters(const Activations&) const { return {}; }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const {
    return {{"Div", {}, {kLayerInput, 1.41421356237f}},
            {"Erf", {}, {0}},
            {"Add", {}, {1, 1.0f}},
            {"Mul", {}, {kLayerInput, 2}},
            {"Mul", {}, {3, 0.5f}}};
  }
};

}  // namespace gradring::nn
