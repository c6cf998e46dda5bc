// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// y = max(x, 0).
struct Relu {
  static constexpr std::string_view kKind = "relu";
  static constexpr std::string_view kTorchAttribute = "relu";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return {}; }
  std::string torch_module() const { return "ReLU()"; }

  static Relu read(LayerKeys&, const Activations&) { return {}; }
  Activations output(const Activations& input) const { return input; }
  std::int64_t multiplications() const { return 1; }

  std::vector<Parameter> parameters(const Activations&) const { return {}; }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const { return {{"Relu"}}; }
};

}  // namespace gradring::nn
