// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "nn/program/program.h"

namespace gradring::tests {

/// The nodes from each convolution of a model on, as a program of it gives them to a backend; those for which the CUDA
/// backend asks cuDNN, with a bias and one group.
std::vector<std::vector<nn::NodeSpec>> convolutions_of(const nn::Model& model, std::int64_t batch, nn::ProgramMode mode,
                                                       kernels::DType dtype);

/// The built-in models that have some.
std::vector<std::string_view> models_for_cudnn();

}  // namespace gradring::tests
