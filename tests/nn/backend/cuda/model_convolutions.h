// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "nn/program/program.h"

namespace gradring::tests {

/// The nodes from each convolution of a model on, as a program of it gives them to a backend; of equal convolutions the
/// first.
std::vector<std::vector<nn::NodeSpec>> convolutions_of(const nn::Model& model, std::int64_t batch, nn::ProgramMode mode,
                                                       kernels::DType dtype);

/// Of a built-in model for images of 28x28x1 or, as `model` kInGroups, convolutions in groups, which no model has:
/// depthwise ones, as MobileNet's, and one in 32 groups, as ResNeXt's.
std::vector<std::vector<nn::NodeSpec>> convolutions_of(std::string_view model, std::int64_t batch, nn::ProgramMode mode,
                                                       kernels::DType dtype);
inline constexpr std::string_view kInGroups = "groups";

/// The built-in models that have some, and kInGroups.
std::vector<std::string_view> models_for_cudnn();

}  // namespace gradring::tests
