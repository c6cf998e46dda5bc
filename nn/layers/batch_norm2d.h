// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// y = (x - mean) / sqrt(var + eps) * weight + bias, per channel. Training takes mean and variance of the batch, and
/// moves the running ones towards them; evaluation takes the running ones.
struct BatchNorm2d {
  std::int64_t channels = 0;
  float eps = 1e-5f;
  float momentum = 0.1f;  ///< running = (1 - momentum) * running + momentum * batch

  static constexpr std::string_view kKind = "batch_norm2d";
  static constexpr std::string_view kTorchAttribute = "bn";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return std::to_string(channels); }
  std::string torch_module() const {
    const BatchNorm2d usual;
    return "BatchNorm2d(" + std::to_string(channels) + (eps == usual.eps ? "" : ", eps=" + shortest(eps)) +
           (momentum == usual.momentum ? ")" : ", momentum=" + shortest(momentum) + ")");
  }

  /// From a model file, where `input` is what it reads.
  static BatchNorm2d read(LayerKeys& keys, const Activations& input) {
    check_input(input.shape.rank() == 4, kKind, input.shape, "[n, h, w, c]");
    return {.channels = input.shape[3],
            .eps = static_cast<float>(keys.number("eps", 1e-30, 1, 1e-5)),
            .momentum = static_cast<float>(keys.number("momentum", 0, 1, 0.1))};
  }

  Activations output(const Activations& input) const {
    check_input(input.shape.rank() == 4 && input.shape[3] == channels, kKind, input.shape,
                "[n, h, w, " + std::to_string(channels) + "]");
    return input;
  }
  std::int64_t multiplications() const { return 4; }

  std::vector<Parameter> parameters(const Activations&) const { return {each("weight", 1), each("bias", 0)}; }
  std::vector<Parameter> buffers(const Activations&) const { return {each("running_mean", 0), each("running_var", 1)}; }

  std::vector<OnnxNode> onnx() const { return {{"BatchNormalization", {{"epsilon", eps}}}}; }

 private:
  Parameter each(const char* name, float value) const {
    return {.name = name, .shape = {channels}, .torch_shape = {channels}, .constant = value};
  }
};

}  // namespace gradring::nn
