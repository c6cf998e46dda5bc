// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/runtime/shape.h"

namespace gradring::nn {

using kernels::Shape;

/// How the initial values of a weight differ from PyTorch's default.
enum class Init : std::uint8_t {
  standard,
  dirac,          ///< the first filters copy the input's channels, as torch.nn.init.dirac_; the others are the default
  unit_variance,  ///< the default, divided by its standard deviation
  whitening,      ///< of the training images (train/core/trainer/whitening.h); the default until those are known
};

/// One tensor of a layer, trained or a buffer. In memory it has the layout `shape` (OHWI for convolutions; [out, in] for
/// linear layers, whose inputs after a Flatten are in HWC order). Checkpoints, hashes and initial values use PyTorch's
/// order.
struct Parameter {
  std::string name = {};   ///< "weight" in its layer, "conv_layers.0.weight" in a model
  Shape shape = {};        ///< in memory
  Shape torch_shape = {};  ///< in PyTorch: [out, in, kh, kw], [out, in], [out]
  double bound = 0;        ///< initial values are drawn from U(-bound, bound); 0: all are `constant`
  float constant = 0;
  Init init = Init::standard;
  /// The inner block that PyTorch stores as [channels, positions] and we as [positions, channels].
  std::int64_t channels = 1;
  std::int64_t positions = 1;
  bool frozen = false;  ///< not trained: it has no gradient, as with PyTorch's requires_grad = False
};

/// `weight`, [out, ...], with the name "weight" and the initial values of torch.nn.Conv2d and Linear, and if the layer has
/// it, its bias [out].
std::vector<Parameter> weight_and_bias(bool has_bias, Parameter weight);

/// Copies one parameter between our order in memory and PyTorch's.
///
/// Shapes    both spans hold parameter.shape.elements() floats.
/// Aliasing  none.
void to_torch_order(const Parameter& parameter, std::span<const float> ours, std::span<float> torch);
void from_torch_order(const Parameter& parameter, std::span<const float> torch, std::span<float> ours);

/// Initial values as PyTorch draws them after torch.manual_seed(seed): one 32-bit word of MT19937 per element that is
/// drawn, in state_dict order. Parameter::init is applied to what was drawn.
///
/// Returns   one vector per parameter, in PyTorch's element order.
/// Numerics  bit-identical to PyTorch on the CPU; with Init::unit_variance but for the sum of squares.
/// Source    torch/nn/modules/{conv,linear}.py reset_parameters; ATen/core/TransformationHelper.h uniform_real.
/// Example   tests/nn/layers/parameter_test.cpp
std::vector<std::vector<float>> draw_torch_uniform(std::span<const Parameter> parameters, std::uint64_t seed);

}  // namespace gradring::nn
