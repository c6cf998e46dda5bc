// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

/// "3 of the 10 values of 'fc_layers.2.bias' are NaN or infinite, and values of 2 more tensors"; empty if all values are
/// finite as f32. Second moments ("exp_avg_sq.") may be infinite, but not negative.
std::string non_finite_weights(std::span<const TensorRecord> tensors);

/// Errors    DivergedError with `from` and that text unless all weights are finite.
void check_finite_weights(std::span<const TensorRecord> weights, const std::filesystem::path& from);

/// Errors    DivergedError with `from` and such a text if the state of an optimizer, with names such as
///           "exp_avg_sq.fc_layers.2.bias", makes the weights NaN or infinite in the next step.
void check_optimizer_values(std::span<const TensorRecord> state, const std::filesystem::path& from);

/// Errors    DivergedError with `from` unless the outputs of a model whose weights are finite are finite: they overflow in
///           `precision`.
void check_finite_outputs(std::span<const float> logits, std::size_t classes, const std::filesystem::path& from,
                          std::string_view precision);

}  // namespace gradring::train
