// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/models/model.h"

namespace gradring::nn {

/// One trained tensor, in state_dict order. In memory it lies in `shape` (OHWI for convolutions; [out, in] for linear
/// layers, whose inputs after a Flatten run in HWC order). Checkpoints, hashes and initial draws use PyTorch's order.
struct Parameter {
  std::string name;         ///< "conv_layers.0.weight"
  Shape shape;              ///< as it lies in memory
  Shape torch_shape;        ///< as PyTorch shows it: [out, in, kh, kw], [out, in], [out]
  std::int64_t fan_in = 0;  ///< inputs that one output sums over
  /// Weights only: the inner block that PyTorch stores as [channels, positions] and we as [positions, channels].
  std::int64_t channels = 1;
  std::int64_t positions = 1;
};

/// The parameters of `model` in state_dict order: each layer's weight, then its bias.
std::vector<Parameter> parameters_of(const Model& model);

/// Copies one parameter between our order in memory and PyTorch's.
///
/// Shapes    both spans hold parameter.shape.elements() floats.
/// Aliasing  none.
void to_torch_order(const Parameter& parameter, std::span<const float> ours, std::span<float> torch);
void from_torch_order(const Parameter& parameter, std::span<const float> torch, std::span<float> ours);

}  // namespace gradring::nn
