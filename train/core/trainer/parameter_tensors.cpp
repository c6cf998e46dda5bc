// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/parameter_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/core/trainer/nan_policy.h"
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

TensorInfo tensor_of(const nn::Parameter& parameter) {
  const auto extents = parameter.torch_shape.extents();
  return {parameter.name, TensorType::f32, {extents.begin(), extents.end()}};
}

bool is_non_finite(double value) { return !std::isfinite(static_cast<float>(value)); }

/// An infinite second moment only makes a step of 0; of a negative one there is no root.
bool is_no_second_moment(double value) { return !(value >= 0); }

bool is_second_moment(const TensorRecord& tensor) { return tensor.name.starts_with("exp_avg_sq."); }

}  // namespace

std::vector<TensorInfo> parameter_tensors(std::span<const nn::Parameter> parameters) {
  std::vector<TensorInfo> tensors;
  for (const nn::Parameter& parameter : parameters)
    if (!parameter.name.empty()) tensors.push_back(tensor_of(parameter));
  return tensors;
}

std::vector<TensorRecord> save_parameters(std::span<const nn::Parameter> parameters, const nn::Arena& arena) {
  std::vector<TensorRecord> records;
  std::vector<float> torch;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name.empty()) continue;
    const std::span<const float> ours = slice(arena, i);
    torch.resize(ours.size());
    nn::to_torch_order(parameters[i], ours, torch);
    const auto bytes = std::as_bytes(std::span(torch));
    records.push_back({tensor_of(parameters[i]), {bytes.begin(), bytes.end()}});
  }
  return records;
}

std::vector<ParameterValues> named_values(std::span<const nn::Parameter> parameters, const nn::Arena& arena,
                                          float factor) {
  std::vector<ParameterValues> all;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!arena.has(static_cast<int>(i))) continue;
    const nn::Parameter& parameter = parameters[i];
    const std::span<const float> ours = slice(arena, i);
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
                                                 std::span<const nn::Parameter> parameters) {
  const std::vector<TensorInfo> expected = parameter_tensors(parameters);
  if (const auto differences = compare_tensors(expected, infos_of(tensors)); !differences.empty())
    throw CheckpointError(path, differences.to_string(), "it belongs to another model: select that model with --model");
  std::vector<std::vector<float>> values;
  for (const TensorInfo& tensor : expected)
    values.push_back(floats_of(*std::ranges::find(tensors, tensor.name, &TensorRecord::name), path));
  return values;
}

void load_parameters(std::span<const TensorRecord> tensors, const std::filesystem::path& path,
                     std::span<const nn::Parameter> parameters, const nn::Arena& arena) {
  const auto values = parameter_values(tensors, path, parameters);  // all converted before one is written
  for (std::size_t i = 0, next = 0; i < parameters.size(); ++i)
    if (!parameters[i].name.empty()) nn::from_torch_order(parameters[i], values[next++], slice(arena, i));
}

SplitRecords split_records(std::span<const TensorRecord> records, std::span<const nn::Parameter> others) {
  SplitRecords split;
  for (const TensorRecord& record : records)
    (std::ranges::find(others, record.name, &nn::Parameter::name) == others.end() ? split.first : split.others)
        .push_back(record);
  return split;
}

std::string non_finite_weights(std::span<const TensorRecord> tensors) {
  std::string first;
  std::size_t more = 0;
  for (const TensorRecord& tensor : tensors) {
    const bool is_second = is_second_moment(tensor);
    const auto values = values_of(tensor);
    const auto count = values ? std::ranges::count_if(*values, is_second ? is_no_second_moment : is_non_finite) : 0;
    if (count == 0) continue;
    if (first.empty())
      first = fmt::format("{} of the {} values of {} {} NaN or {}", count, values->size(), in_quotes(tensor.name),
                          count == 1 ? "is" : "are", is_second ? "negative" : "infinite");
    else
      ++more;
  }
  if (more > 0) first += fmt::format(", and values of {} more tensor{}", more, more == 1 ? "" : "s");
  return first;
}

void check_finite_weights(std::span<const TensorRecord> weights, const std::filesystem::path& from) {
  if (const std::string found = non_finite_weights(weights); !found.empty())
    throw DivergedError(
        fmt::format("{}: {}; use a checkpoint from before that, or other weights", from.string(), found));
}

void check_optimizer_values(std::span<const TensorRecord> state, const std::filesystem::path& from) {
  if (const std::string found = non_finite_weights(state); !found.empty())
    throw DivergedError(fmt::format("{}: {}; use a checkpoint from before that, or only its weights, with --weights",
                                    from.string(), found));
}

void check_finite_outputs(std::span<const float> logits, std::size_t classes, const std::filesystem::path& from,
                          std::string_view precision) {
  std::size_t samples = 0;
  for (std::size_t begin = 0; begin + classes <= logits.size(); begin += classes)
    samples += std::ranges::any_of(logits.subspan(begin, classes), is_non_finite) ? 1 : 0;
  if (samples > 0)
    throw DivergedError(fmt::format(
        "{}: the outputs for {} of {} samples are NaN or infinite in {}, although the weights are finite; {}",
        from.string(), samples, logits.size() / classes, precision,
        precision == "fp32" ? "use other weights" : "evaluate with --precision fp32"));
}

}  // namespace gradring::train
