// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "nn/models/model.h"

namespace gradring::nn {

/// One trained tensor. In memory it has the layout `shape` (OHWI for convolutions; [out, in] for linear layers, whose inputs
/// after a Flatten are in HWC order). Checkpoints, hashes and initial values use PyTorch's order.
struct Parameter {
  std::string name;         ///< "conv_layers.0.weight"
  Shape shape;              ///< in memory
  Shape torch_shape;        ///< in PyTorch: [out, in, kh, kw], [out, in], [out]
  std::int64_t fan_in = 0;  ///< inputs per output
  /// Of weights: the inner block that PyTorch stores as [channels, positions] and we as [positions, channels].
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

/// Initial weights as PyTorch draws them after torch.manual_seed(seed): U(-1/sqrt(fan_in), +1/sqrt(fan_in)) for weights
/// and biases, one 32-bit word of MT19937 per element, in state_dict order.
///
/// Returns   one vector per parameter, in PyTorch's element order.
/// Numerics  bit-identical to PyTorch on the CPU.
/// Source    torch/nn/modules/{conv,linear}.py reset_parameters; ATen/core/TransformationHelper.h uniform_real.
/// Example   tests/nn/parameter/parameter_test.cpp
std::vector<std::vector<float>> draw_torch_uniform(std::span<const Parameter> parameters, std::uint64_t seed);

}  // namespace gradring::nn
