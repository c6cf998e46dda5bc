// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "nn/parameter/parameter.h"

namespace gradring::nn {

/// Initial weights as PyTorch draws them after torch.manual_seed(seed): U(-1/sqrt(fan_in), +1/sqrt(fan_in)) for weights
/// and biases, one 32-bit word of MT19937 an element, in state_dict order.
///
/// Returns   one vector a parameter, in PyTorch's element order.
/// Numerics  bit-identical to PyTorch on the CPU.
/// Source    torch/nn/modules/{conv,linear}.py reset_parameters; ATen/core/TransformationHelper.h uniform_real.
/// Example   tests/nn/init/torch_uniform_test.cpp
std::vector<std::vector<float>> draw_torch_uniform(std::span<const Parameter> parameters, std::uint64_t seed);

}  // namespace gradring::nn
