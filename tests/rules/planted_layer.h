// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/layers/parts.h"

namespace gradring::nn {

/// A layer for planted_layer.sh, with parameters and buffers; each part is one line, so that it can be left out.
struct PlantedLayer {
  std::int64_t channels = 0;

  // clang-format off
  static constexpr std::string_view kKind = "planted";
  static constexpr std::string_view kTorchAttribute = "bn";
  static constexpr std::size_t kInputs = 1;
  std::string sizes() const { return std::to_string(channels); }
  std::string torch_module() const { return "BatchNorm2d(" + sizes() + ")"; }
  static PlantedLayer read(LayerKeys& keys, const Activations&) { return {keys.integer("channels", 1)}; }
  Activations output(const Activations& input) const { return input; }
  std::int64_t multiplications() const { return 2; }
  std::vector<Parameter> parameters(const Activations&) const { return {each("weight", 1), each("bias", 0)}; }
  std::vector<Parameter> buffers(const Activations&) const { return {each("running_mean", 0), each("running_var", 1)}; }
  std::vector<OnnxNode> onnx() const { return {{"BatchNormalization"}}; }
  // clang-format on

 private:
  Parameter each(const char* name, float value) const {
    return {.name = name, .shape = {channels}, .torch_shape = {channels}, .constant = value};
  }
};

}  // namespace gradring::nn
