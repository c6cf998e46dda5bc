// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// "3 of the 10 values of 'fc_layers.2.bias' are NaN or infinite, and values of 2 more tensors"; empty if all values are
/// finite as f32.
std::string non_finite_weights(std::span<const TensorRecord> weights);

/// Errors    DivergedError with `from` and that text unless all weights are finite.
void check_finite_weights(std::span<const TensorRecord> weights, const std::filesystem::path& from);

/// Errors    DivergedError with `from` unless the outputs of a model whose weights are finite are finite: they overflow in
///           `precision`.
void check_finite_outputs(std::span<const float> logits, std::size_t classes, const std::filesystem::path& from,
                          std::string_view precision);

}  // namespace gradring::train
