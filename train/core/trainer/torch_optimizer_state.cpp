// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/torch_optimizer_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "train/core/trainer/parameter_tensors.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr double kMostApplied = 2e9;

/// The states that PyTorch's optimizer has for each parameter.
std::vector<std::string> state_names(const ParameterGroup& group) {
  const OptimizerSpec& spec = group.options;
  if (group.frozen) return {};
  if (!is_adam(spec.kind))
    return spec.momentum == 0 ? std::vector<std::string>{} : std::vector<std::string>{"momentum_buffer"};
  return {"exp_avg", "exp_avg_sq"};
}

std::vector<std::pair<std::string, TorchOptimizer::Value>> options_of(const OptimizerSpec& spec, double learning_rate) {
  using Value = TorchOptimizer::Value;
  if (!is_adam(spec.kind))
    return {{"lr", learning_rate},
            {"momentum", spec.momentum},
            {"dampening", spec.dampening},
            {"weight_decay", spec.weight_decay},
            {"nesterov", spec.nesterov},
            {"maximize", false},
            {"foreach", Value()},
            {"differentiable", false},
            {"fused", Value()}};
  return {{"lr", learning_rate},
          {"betas", std::vector{spec.betas.first, spec.betas.second}},
          {"eps", spec.epsilon},
          {"weight_decay", spec.weight_decay},
          {"amsgrad", false},
          {"maximize", false},
          {"foreach", Value()},
          {"capturable", false},
          {"differentiable", false},
          {"fused", Value()},
          {"decoupled_weight_decay", spec.kind == OptimizerKind::adamw}};
}

TensorRecord scalar(const char* name, float value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {{name, TensorType::f32, {}}, {bytes.begin(), bytes.end()}};
}

std::vector<TensorInfo> expected_tensors(const ParameterGroups& groups, std::span<const nn::Parameter> parameters) {
  std::vector<TensorInfo> expected;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    for (const std::string& state : state_names(groups.of(i)))
      for (TensorInfo& tensor : parameter_tensors(parameters.subspan(i, 1))) {
        tensor.name.insert(0, state + ".");
        expected.push_back(std::move(tensor));
      }
  return expected;
}

/// The optimizer of all trained parameters. `verb` says how `from` is related to them: "has", "does not fit".
///
/// Errors    CheckpointError unless one optimizer of PyTorch can have all of them.
OptimizerKind one_optimizer(const ParameterGroups& groups, std::string_view verb, const fs::path& from) {
  constexpr const char* kAdvice = "go on with the weights alone";
  std::optional<OptimizerKind> first;
  for (std::size_t i = 0; i < groups.of_parameter.size(); ++i) {
    if (groups.of(i).frozen) continue;
    const OptimizerKind kind = groups.of(i).options.kind;
    if (kind == OptimizerKind::muon)
      throw CheckpointError(
          from, fmt::format("{} parameters of muon, and torch.optim.Muon takes only those of two dimensions", verb),
          kAdvice);
    if (first && is_adam(kind) != is_adam(*first))
      throw CheckpointError(from,
                            fmt::format("{} parameter groups of {} and {}, which PyTorch keeps in two optimizers", verb,
                                        word_of(*first), word_of(kind)),
                            kAdvice);
    if (!first) first = kind;
  }
  return first.value_or(groups.groups.front().options.kind);
}

std::vector<nn::Parameter> trained_parameters(const ParameterGroups& groups,
                                              std::span<const nn::Parameter> parameters) {
  std::vector<nn::Parameter> trained;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!groups.of(i).frozen) trained.push_back(parameters[i]);
  return trained;
}

void check_options(const TorchOptimizer& optimizer, const fs::path& from) {
  for (const TorchOptimizer::Group& group : optimizer.groups)
    for (const auto& [name, value] : group.options)
      if ((name == "amsgrad" || name == "maximize") && to_string(value) == "True")
        throw CheckpointError(from, "was saved with " + name + "=True, which gradring lacks", "train without it");
}

std::int32_t steps_in(const TensorRecord& tensor, const fs::path& from) {
  const auto values = values_of(tensor);
  const double step = values && values->size() == 1 ? values->front() : -1;
  if (!(step >= 0 && step <= kMostApplied) || step != std::floor(step))
    refuse_optimizer(from, "has a 'step' that is not a number of steps");
  return static_cast<std::int32_t>(step);
}

/// Takes the states of one parameter.
///
/// Returns   its number of steps; -1: not counted.
std::int32_t take_states(const std::vector<TensorRecord>& tensors, const nn::Parameter& parameter,
                         const ParameterGroup& group, std::vector<TensorRecord>& taken, const fs::path& from) {
  const OptimizerSpec& spec = group.options;
  const std::vector<std::string> known = state_names(group);
  std::int32_t steps = -1;
  for (const TensorRecord& tensor : tensors) {
    if (tensor.name == kOptimizerStep) {
      steps = steps_in(tensor, from);
      continue;
    }
    if (std::ranges::find(known, tensor.name) == known.end())
      refuse_optimizer(from,
                       fmt::format("has {}, which --optimizer {}{} lacks", in_quotes(tensor.name), word_of(spec.kind),
                                   !is_adam(spec.kind) && spec.momentum == 0 ? " without --momentum" : ""));
    taken.push_back(tensor);
    taken.back().name += "." + parameter.name;
  }
  return steps;
}

std::vector<TensorRecord> zeros(const std::vector<TensorInfo>& tensors) {
  std::vector<TensorRecord> records;
  for (const TensorInfo& tensor : tensors)
    records.push_back({tensor, std::vector<std::byte>(byte_size(tensor.type, tensor.shape).value())});
  return records;
}

bool is_different(const TorchOptimizer::Value& a, const TorchOptimizer::Value& b) {
  return to_string(a) != to_string(b);
}

}  // namespace

TorchOptimizer to_torch_optimizer(const SteppedOptimizer& stepped, const ParameterGroups& groups,
                                  std::span<const double> learning_rates, std::span<const nn::Parameter> parameters,
                                  const fs::path& from) {
  one_optimizer(groups, "has", from);
  std::vector<TensorInfo> found = infos_of(stepped.state);
  std::erase_if(found, [](const TensorInfo& tensor) { return tensor.name.starts_with(std::string(kEmaState) + "."); });
  if (const auto differences = compare_tensors(expected_tensors(groups, parameters), found); !differences.empty())
    throw CheckpointError(from, differences.to_string(), "it contradicts its settings: use another checkpoint");
  TorchOptimizer optimizer;
  std::int64_t number = 0;
  for (std::size_t g = 0; g < groups.groups.size(); ++g) {
    const ParameterGroup& group = groups.groups[g];
    TorchOptimizer::Group made{options_of(group.options, learning_rates[g]), {}};
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (group.frozen || groups.of_parameter[i] != static_cast<int>(g)) continue;
      made.parameters.push_back(number);
      const std::vector<std::string> states = state_names(group);
      std::vector<TensorRecord> tensors;
      if (is_adam(group.options.kind))
        tensors.push_back(scalar(kOptimizerStep, static_cast<float>(stepped.applied_steps)));
      for (const std::string& state : states) {
        tensors.push_back(*std::ranges::find(stepped.state, state + "." + parameters[i].name, &TensorRecord::name));
        tensors.back().name = state;
      }
      if (stepped.applied_steps > 0 && !states.empty()) optimizer.state[number] = std::move(tensors);
      ++number;
    }
    if (!made.parameters.empty()) optimizer.groups.push_back(std::move(made));
  }
  return optimizer;
}

SteppedOptimizer from_torch_optimizer(const TorchOptimizer& optimizer, const ParameterGroups& groups,
                                      std::span<const nn::Parameter> parameters, const fs::path& from) {
  const OptimizerKind kind = one_optimizer(groups, "does not fit", from);
  check_options(optimizer, from);
  const std::vector<nn::Parameter> trained = trained_parameters(groups, parameters);
  const std::vector<std::int64_t> numbers = numbers_in(optimizer);
  // PyTorch's optimizer may have been made of all parameters, or only of those that are trained.
  const std::span<const nn::Parameter> listed =
      numbers.size() == trained.size() ? std::span<const nn::Parameter>(trained) : parameters;
  const std::vector<std::size_t> order = match_parameters(optimizer, listed, from);
  SteppedOptimizer stepped;
  std::set<std::int32_t> steps;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (const auto state = optimizer.state.find(numbers[i]); state != optimizer.state.end()) {
      const nn::Parameter& parameter = listed[order[i]];
      const auto index = std::ranges::find(parameters, parameter.name, &nn::Parameter::name) - parameters.begin();
      const ParameterGroup& group = groups.of(static_cast<std::size_t>(index));
      if (!group.frozen) steps.insert(take_states(state->second, parameter, group, stepped.state, from));
    }
  if (steps.size() > 1) refuse_optimizer(from, "has parameters after different numbers of steps");
  const std::vector<TensorInfo> expected = expected_tensors(groups, parameters);
  if (stepped.state.empty() && (steps.empty() || !is_adam(kind))) {
    stepped.state = zeros(expected);  // no step was made, or without momentum
    return stepped;
  }
  if (const auto differences = compare_tensors(expected, infos_of(stepped.state)); !differences.empty())
    refuse_optimizer(from, differences.to_string());
  stepped.applied_steps = *steps.begin() >= 0 ? *steps.begin() : 1;
  return stepped;
}

std::vector<std::string> optimizer_differences(const TorchOptimizer& optimizer, std::span<const ParameterGroup> groups,
                                               double learning_rate) {
  using NamedValue = std::pair<std::string, TorchOptimizer::Value>;
  std::vector<std::string> differences;
  const std::vector<NamedValue> here = options_of(groups.front().options, learning_rate);
  const auto some_group_has = [&](const NamedValue& option) {
    return std::ranges::any_of(groups, [&](const ParameterGroup& group) {
      const auto own = options_of(group.options, group.learning_rate.value_or(learning_rate));
      return std::ranges::any_of(own, [&](const NamedValue& other) {
        return other.first == option.first && !is_different(other.second, option.second);
      });
    });
  };
  for (const TorchOptimizer::Group& group : optimizer.groups)
    for (const auto& [name, value] : group.options) {
      const auto own = std::ranges::find(here, name, &NamedValue::first);
      const bool is_of_computation =
          name == "foreach" || name == "fused" || name == "capturable" || name == "differentiable";
      const bool is_bias_group = &group != &optimizer.groups.front() && name == "weight_decay";
      if (own == here.end() || is_of_computation || is_bias_group || some_group_has({name, value})) continue;
      std::string difference = fmt::format("the optimizer state has {} {}, this run uses {}", name, to_string(value),
                                           to_string(own->second));
      if (std::ranges::find(differences, difference) == differences.end())  // groups mostly share their options
        differences.push_back(std::move(difference));
    }
  return differences;
}

}  // namespace gradring::train
