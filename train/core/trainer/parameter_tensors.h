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

/// The tensors of a file for `parameters`: their names, PyTorch's shapes, f32. Those without a name have none.
std::vector<TensorInfo> parameter_tensors(std::span<const nn::Parameter> parameters);

/// The same with the values of an arena in host memory.
std::vector<TensorRecord> save_parameters(std::span<const nn::Parameter> parameters, const nn::Arena& arena);

/// The values of each parameter that has a name, in PyTorch's order. Converts f16, bf16 and f64 to f32.
///
/// Errors    CheckpointError as load_parameters.
std::vector<std::vector<float>> parameter_values(std::span<const TensorRecord> tensors,
                                                 const std::filesystem::path& path,
                                                 std::span<const nn::Parameter> parameters);

/// The values of an arena in host memory, times `factor`, of those parameters that it has.
std::vector<ParameterValues> named_values(std::span<const nn::Parameter> parameters, const nn::Arena& arena,
                                          float factor = 1);

/// Fills an arena in host memory, but for parameters without a name. Converts f16, bf16 and f64 to f32.
///
/// Errors    CheckpointError with `path`, and the arena is unchanged: tensors that are missing, unexpected, or of
///           another shape, by name; a type that is not floating-point.
void load_parameters(std::span<const TensorRecord> tensors, const std::filesystem::path& path,
                     std::span<const nn::Parameter> parameters, const nn::Arena& arena);

/// Records of the tensors that are not in `others`, and those that are, by name.
struct SplitRecords {
  std::vector<TensorRecord> first;
  std::vector<TensorRecord> others;
};
SplitRecords split_records(std::span<const TensorRecord> records, std::span<const nn::Parameter> others);

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
