// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "nn/parameter/arena.h"
#include "nn/parameter/parameter.h"
#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// The tensors that files hold for an arena of `parameters`: names behind `prefix`, PyTorch's shapes, f32. Weights have no
/// prefix; an optimizer's moments have one each.
std::vector<TensorInfo> parameter_tensors(std::span<const nn::Parameter> parameters, std::string_view prefix = "");

/// The same with the values of an arena in host memory, in PyTorch's order.
std::vector<TensorRecord> save_parameters(std::span<const nn::Parameter> parameters, const nn::Arena& arena,
                                          std::string_view prefix = "");

/// Fills an arena in host memory from the tensors of a file, which hold f32, or f16, bf16 or f64 that are converted; what
/// lies between the parameters is left alone. Among `tensors` only those with the prefix are looked at.
///
/// Errors    CheckpointError with `path`: all tensors that are missing, unexpected, or of another shape, by name; a type
///           that is no floating-point number. The arena is untouched then.
void load_parameters(std::span<const TensorRecord> tensors, const std::filesystem::path& path,
                     std::span<const nn::Parameter> parameters, const nn::Arena& arena, std::string_view prefix = "");

}  // namespace gradring::train
