// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/program/arena.h"
#include "train/records/checkpoint/tensor_record.h"
#include "train/records/metrics/parameter_snapshot.h"

namespace gradring::train {

/// The tensors of a file for `parameters`: their names after `prefix`, PyTorch's shapes, f32. Weights have no prefix;
/// each moment of an optimizer has one.
std::vector<TensorInfo> parameter_tensors(std::span<const nn::Parameter> parameters, std::string_view prefix = "");

/// The same with the values of an arena in host memory.
std::vector<TensorRecord> save_parameters(std::span<const nn::Parameter> parameters, const nn::Arena& arena,
                                          std::string_view prefix = "");

/// The values of each parameter in PyTorch's order, from the tensors whose names begin with `prefix`. Converts f16, bf16
/// and f64 to f32.
///
/// Errors    CheckpointError as load_parameters.
std::vector<std::vector<float>> parameter_values(std::span<const TensorRecord> tensors,
                                                 const std::filesystem::path& path,
                                                 std::span<const nn::Parameter> parameters,
                                                 std::string_view prefix = "");

/// The values of an arena in host memory, times `factor`.
std::vector<ParameterValues> named_values(std::span<const nn::Parameter> parameters, const nn::Arena& arena,
                                          float factor = 1);

/// Fills an arena in host memory from the tensors whose names begin with `prefix`. Converts f16, bf16 and f64 to f32.
///
/// Errors    CheckpointError with `path`, and the arena is unchanged: tensors that are missing, unexpected, or of
///           another shape, by name; a type that is not floating-point.
void load_parameters(std::span<const TensorRecord> tensors, const std::filesystem::path& path,
                     std::span<const nn::Parameter> parameters, const nn::Arena& arena, std::string_view prefix = "");

}  // namespace gradring::train
