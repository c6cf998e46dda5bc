// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// [n, h, w, c] -> [n, h*w*c]. Only the shape changes; the memory is the same.
struct Flatten {
  static constexpr std::string_view kKind = "flatten";
  static constexpr std::string_view kTorchAttribute = "flatten";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return {}; }
  std::string torch_module() const { return "Flatten()"; }

  static Flatten read(LayerKeys&, const Activations&) { return {}; }
  Activations output(const Activations& input) const {
    check_input(input.shape.rank() >= 1, kKind, input.shape, "a batch");
    return {{input.shape[0], input.shape.with_batch(1).elements()}, input.channels};
  }
  std::int64_t multiplications() const { return 1; }

  std::vector<Parameter> parameters(const Activations&) const { return {}; }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const { return {{"Flatten", {{"axis", 1}}}}; }
};

}  // namespace gradring::nn
