// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "nn/layers/parameter.h"
#include "train/records/checkpoint/torch_optimizer.h"

namespace gradring::train {

/// The state that counts the steps: a number, unlike the others.
inline constexpr const char* kOptimizerStep = "step";

bool is_bias(const nn::Parameter& parameter);

/// Indices of the parameters: weights before biases.
std::vector<std::size_t> weights_first(std::span<const nn::Parameter> parameters);

/// The parameter numbers of all groups, in order.
std::vector<std::int64_t> numbers_in(const TorchOptimizer& optimizer);

/// The index of the model's parameter for each of numbers_in(optimizer), by names where the file has them, else by the
/// shapes of the states: the model's order, weights or biases first, or any order if no two parameters have one shape.
///
/// Errors    CheckpointError with `from`, which says what differs.
std::vector<std::size_t> match_parameters(const TorchOptimizer& optimizer, std::span<const nn::Parameter> parameters,
                                          const std::filesystem::path& from);

/// Errors    always CheckpointError: `from` has `found`, so it belongs to another model or optimizer.
[[noreturn]] void refuse_optimizer(const std::filesystem::path& from, const std::string& found);

}  // namespace gradring::train
