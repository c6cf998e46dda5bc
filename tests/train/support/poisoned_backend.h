// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>

#include "nn/backend/backend.h"

namespace gradring::tests {

/// Puts a NaN into the gradient of the ConvNet's second convolution (kPoisoned) in chosen backward passes, counted from
/// 0 on: steps that are made again count again.
std::unique_ptr<nn::Backend> poisoned_backend(std::unique_ptr<nn::Backend> inner, std::set<int> passes);

inline constexpr const char* kPoisoned = "conv_layers.3.weight";

}  // namespace gradring::tests
