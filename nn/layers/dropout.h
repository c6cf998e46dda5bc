// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// Training sets each value to 0 with probability p, and multiplies the others by 1 / (1 - p); evaluation gives y = x.
/// Masks are the same in every layout of a step's batch (kernels/ops/dropout).
struct Dropout {
  double p = 0.5;

  static constexpr double kMostP = 0.999;
  static constexpr std::string_view kKind = "dropout";
  static constexpr std::string_view kTorchAttribute = "dropout";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return shortest(p); }
  std::string torch_module() const { return "Dropout(p=" + shortest(p) + ")"; }

  /// From a model file.
  static Dropout read(LayerKeys& keys, const Activations&) { return {.p = keys.number("p", 0, kMostP, 0.5)}; }

  Activations output(const Activations& input) const { return input; }
  std::int64_t multiplications() const { return 5; }

  std::vector<Parameter> parameters(const Activations&) const { return {}; }
  std::vector<Parameter> buffers(const Activations&) const { return {}; }

  std::vector<OnnxNode> onnx() const { return {{"Identity"}}; }
};

}  // namespace gradring::nn
