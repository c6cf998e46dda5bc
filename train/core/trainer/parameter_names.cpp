// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/parameter_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <variant>

#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

using nn::kWrapperComponents;

/// Tensors of PyTorch's modules that only count.
struct TorchCounter {
  std::string_view name;
  std::string_view of;
};
constexpr TorchCounter kTorchCounters[] = {{"n_averaged", "AveragedModel"}, {"num_batches_tracked", "BatchNorm"}};

/// "conv1.weight" for "module._orig_mod.conv1.weight".
std::string without_wrappers(std::string_view name) {
  std::string kept;
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string_view component = name.substr(0, dot);
    const bool is_last = dot == name.size();
    if (is_last || std::ranges::find(kWrapperComponents, component) == std::end(kWrapperComponents))
      kept += name.substr(0, is_last ? dot : dot + 1);
    name.remove_prefix(is_last ? dot : dot + 1);
  }
  return kept;
}

bool counts_as(const TorchCounter& counter, std::string_view name) {
  return name.substr(name.rfind('.') + 1) == counter.name;  // npos + 1 is 0
}

bool is_counter(std::string_view name) {
  return std::ranges::any_of(kTorchCounters, [&](const TorchCounter& counter) { return counts_as(counter, name); });
}

/// What `name` has more than `kept`, its end: "module."; the wrappers' components if they are elsewhere.
std::string stripped_from(const std::string& name, std::string_view kept) {
  if (name.ends_with(kept)) return name.substr(0, name.size() - kept.size());
  std::set<std::string> components;
  for (const std::string_view component : kWrapperComponents)
    if (("." + name).find("." + std::string(component) + ".") != std::string::npos)
      components.insert(std::string(component) + ".");
  return fmt::format("{}", fmt::join(components, ""));
}

}  // namespace

ParameterNames::ParameterNames(const nn::Model& model) {
  // The model's own names first: another layer's attribute or number may be the same.
  for (const nn::Parameter& tensor : nn::tensors_of(model)) own_.emplace(tensor.name, tensor.name);
  const std::vector<nn::Activations> inputs = nn::inputs_of(model);
  std::map<std::string_view, int> numbers;  // of each attribute
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto& [name, layer, reads] = model.layers[i];
    const std::string_view kind = std::visit([](const auto& one) { return one.kTorchAttribute; }, layer);
    const std::string attribute = std::string(kind) + std::to_string(++numbers[kind]);
    for (const auto& tensors : {nn::parameters_of(layer, inputs[i]), nn::buffers_of(layer, inputs[i])})
      for (const nn::Parameter& tensor : tensors)
        for (const std::string& spelling : {attribute, std::to_string(i)})
          own_.emplace(spelling + "." + tensor.name, name + "." + tensor.name);
  }
}

std::optional<std::string> ParameterNames::own(std::string_view name, std::string_view prefix) const {
  const std::string unwrapped = without_wrappers(name);
  if (!unwrapped.starts_with(prefix)) return std::nullopt;
  const auto found = own_.find(std::string_view(unwrapped).substr(prefix.size()));
  if (found == own_.end()) return std::nullopt;
  return found->second;
}

bool ParameterNames::is_known(std::string_view name, std::string_view prefix) const {
  return own(name, prefix) || is_counter(name);
}

std::string ParameterNames::common_prefix(std::span<const std::string> names) const {
  constexpr int kMostComponents = 16;
  const auto any = std::ranges::find_if_not(names, is_counter);
  if (any == names.end()) return {};
  const std::string first = without_wrappers(*any);
  std::size_t end = 0;
  for (int components = 0; components < kMostComponents; ++components) {
    const std::string_view prefix = std::string_view(first).substr(0, end);
    if (std::ranges::all_of(names, [&](const std::string& name) { return is_known(name, prefix); }))
      return std::string(prefix);
    const std::size_t dot = first.find('.', end);
    if (dot == first.npos) break;
    end = dot + 1;
  }
  return {};
}

std::vector<std::string> ParameterNames::rename(std::vector<TensorRecord>& tensors,
                                                const std::filesystem::path& path) const {
  std::vector<std::string> names, remarks;
  for (const TensorRecord& tensor : tensors) names.push_back(tensor.name);
  const std::string prefix = common_prefix(names);
  std::set<std::string> stripped;
  std::map<std::string, std::string> taken;  // the model's name -> the name in the file
  for (TensorRecord& tensor : tensors) {
    const auto name = own(tensor.name, prefix);
    if (!name) continue;
    const auto [earlier, is_new] = taken.emplace(*name, tensor.name);
    if (!is_new)
      throw CheckpointError(
          path,
          "has " + in_quotes(*name) + " twice, as " + in_quotes(earlier->second) + " and as " + in_quotes(tensor.name),
          "remove one of them");
    const std::string unwrapped = without_wrappers(tensor.name);
    const std::string more = stripped_from(tensor.name, std::string_view(unwrapped).substr(prefix.size()));
    if (!more.empty()) stripped.insert(in_quotes(more));
    tensor.name = *name;
  }
  if (!stripped.empty())
    remarks.push_back(
        fmt::format("{}: stripped {} from the names of the tensors", path.string(), fmt::join(stripped, " and ")));
  for (const TorchCounter& counter : kTorchCounters)
    if (std::erase_if(tensors, [&](const TensorRecord& tensor) { return counts_as(counter, tensor.name); }) > 0)
      remarks.push_back(fmt::format("{}: ignored '{}', the counter of {}", path.string(), counter.name, counter.of));
  return remarks;
}

void ParameterNames::rename(TorchOptimizer& optimizer) const {
  std::vector<std::string> names;
  for (const TorchOptimizer::Group& group : optimizer.groups)
    names.insert(names.end(), group.names.begin(), group.names.end());
  const std::string prefix = common_prefix(names);
  for (TorchOptimizer::Group& group : optimizer.groups)
    for (std::string& name : group.names)
      if (const auto known = own(name, prefix)) name = *known;
}

}  // namespace gradring::train
