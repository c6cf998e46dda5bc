// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/parameter_tensors.h"

#include <algorithm>

#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

std::span<float> slice(const nn::Arena& arena, std::size_t index) {
  const int i = static_cast<int>(index);
  return {arena.parameter(i), arena.layout.parameter(i).elements};
}

std::vector<float> floats_of(const TensorRecord& tensor, const std::filesystem::path& path) {
  using enum TensorType;
  if (tensor.type != f32 && tensor.type != f16 && tensor.type != bf16 && tensor.type != f64)
    throw CheckpointError(
        path, "has " + in_quotes(tensor.name) + " of type " + std::string(names_of(tensor.type).safetensors),
        "convert it to F32, F16, BF16 or F64");
  const auto values = values_of(tensor).value();
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<TensorInfo> parameter_tensors(std::span<const nn::Parameter> parameters, std::string_view prefix) {
  std::vector<TensorInfo> tensors;
  for (const nn::Parameter& parameter : parameters) {
    const auto extents = parameter.torch_shape.extents();
    tensors.push_back({std::string(prefix) + parameter.name, TensorType::f32, {extents.begin(), extents.end()}});
  }
  return tensors;
}

std::vector<TensorRecord> save_parameters(std::span<const nn::Parameter> parameters, const nn::Arena& arena,
                                          std::string_view prefix) {
  std::vector<TensorRecord> records;
  std::vector<float> torch;
  for (TensorInfo& info : parameter_tensors(parameters, prefix)) {
    const std::span<const float> ours = slice(arena, records.size());
    torch.resize(ours.size());
    nn::to_torch_order(parameters[records.size()], ours, torch);
    const auto bytes = std::as_bytes(std::span(torch));
    records.push_back({std::move(info), {bytes.begin(), bytes.end()}});
  }
  return records;
}

std::vector<ParameterValues> named_values(std::span<const nn::Parameter> parameters, const nn::Arena& arena,
                                          float factor) {
  std::vector<ParameterValues> all;
  for (const nn::Parameter& parameter : parameters) {
    const std::span<const float> ours = slice(arena, all.size());
    const auto extents = parameter.torch_shape.extents();
    ParameterValues& values = all.emplace_back(
        ParameterValues{.name = parameter.name, .shape = {extents.begin(), extents.end()}, .values = {}});
    values.values.resize(ours.size());
    nn::to_torch_order(parameter, ours, values.values);
    for (float& value : values.values) value *= factor;
  }
  return all;
}

std::vector<std::vector<float>> parameter_values(std::span<const TensorRecord> tensors,
                                                 const std::filesystem::path& path,
                                                 std::span<const nn::Parameter> parameters, std::string_view prefix) {
  std::vector<TensorInfo> candidates = infos_of(tensors);
  std::erase_if(candidates, [&](const TensorInfo& tensor) { return !tensor.name.starts_with(prefix); });
  const std::vector<TensorInfo> expected = parameter_tensors(parameters, prefix);
  if (const auto differences = compare_tensors(expected, candidates); !differences.empty())
    throw CheckpointError(path, differences.to_string(), "it belongs to another model: select that model with --model");
  std::vector<std::vector<float>> values;
  for (const TensorInfo& tensor : expected)
    values.push_back(floats_of(*std::ranges::find(tensors, tensor.name, &TensorRecord::name), path));
  return values;
}

void load_parameters(std::span<const TensorRecord> tensors, const std::filesystem::path& path,
                     std::span<const nn::Parameter> parameters, const nn::Arena& arena, std::string_view prefix) {
  const auto values = parameter_values(tensors, path, parameters, prefix);  // all converted before one is written
  for (std::size_t i = 0; i < values.size(); ++i) nn::from_torch_order(parameters[i], values[i], slice(arena, i));
}

}  // namespace gradring::train
