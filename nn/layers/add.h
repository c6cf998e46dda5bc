// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// y = x + residual, of one shape: where a shortcut joins.
struct Add {
  static constexpr std::string_view kKind = "add";
  static constexpr std::string_view kTorchAttribute = "add";
  static constexpr std::size_t kInputs = 2;
  std::string sizes() const { return {}; }
  std::string torch_module() const { return "x + residual"; }

  static Add read(LayerKeys&, const Activations&) { return {}; }
  Activations output(const Activations& input) const { return input; }
  std::int64_t multiplications() const { return 1; }

  std::vector<Parameter> parameters(const Activations&) const { return {}; }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const { return {{"Add"}}; }
};

}  // namespace gradring::nn
