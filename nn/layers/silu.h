// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// y = x / (1 + exp(-x)).
struct Silu {
  static constexpr std::string_view kKind = "silu";
  static constexpr std::string_view kTorchAttribute = "silu";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return {}; }
  std::string torch_module() const { return "SiLU()"; }

  static Silu read(LayerKeys&, const Activations&) { return {}; }
  Activations output(const Activations& input) const { return input; }
  std::int64_t multiplications() const { return 8; }

  std::vector<Parameter> parameters(const Activations&) const { return {}; }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const { return {{"Sigmoid"}, {"Mul", {}, {kLayerInput, 0}}}; }
};

}  // namespace gradring::nn
