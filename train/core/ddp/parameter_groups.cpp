// SPDX-License-Identifier: Apache-2.0
#include "train/core/ddp/parameter_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/in_quotes.h"
#include "kernels/base/nearest_name.h"

namespace gradring::train {
namespace {

/// The group of parameters that no pattern matches.
ParameterGroup run_group(OptimizerSpec spec) {
  spec.no_bias_decay = false;
  spec.ema = 0;
  spec.groups.clear();
  return {.options = std::move(spec)};
}

template <class Value, class Given>
void override_by(Value& value, const Given& given) {
  if (given) value = *given;
}

void apply(const GroupOverride& given, ParameterGroup& group) {
  OptimizerSpec& options = group.options;
  override_by(options.kind, given.kind);
  override_by(options.momentum, given.momentum);
  override_by(options.dampening, given.dampening);
  override_by(options.nesterov, given.nesterov);
  override_by(options.betas, given.betas);
  override_by(options.epsilon, given.epsilon);
  override_by(options.weight_decay, given.weight_decay);
  override_by(group.epochs, given.epochs);
  override_by(group.frozen, given.frozen);
  if (given.learning_rate) group.learning_rate = given.learning_rate;
}

/// Leaves out the run's options that the group's optimizer lacks.
void drop_unused(OptimizerSpec& options) {
  const OptimizerSpec defaults;
  if (is_adam(options.kind)) {
    options.momentum = options.dampening = 0;
    options.nesterov = false;
  } else {
    options.betas = defaults.betas;
    options.epsilon = defaults.epsilon;
  }
  if (options.kind == OptimizerKind::muon) {
    options.dampening = 0;
    if (options.muon_scale == MuonScale::normalize) options.weight_decay = 0;
  } else {
    options.muon_scale = defaults.muon_scale;
    options.muon_steps = defaults.muon_steps;
  }
}

bool is_weight(const nn::Parameter& parameter) { return parameter.torch_shape.rank() > 1; }

/// Muon is for the weights of hidden layers: not for the last ones, nor for vectors.
bool takes_muon(std::span<const nn::Parameter> parameters, const nn::Parameter& parameter) {
  const auto last = std::ranges::find_if(parameters.rbegin(), parameters.rend(), is_weight);
  return is_weight(parameter) && &parameter != &*last;
}

/// Checks what the groups together give a parameter: of those that match it, the ones from the last that names an
/// optimizer. What others give that it lacks is dropped, as the run's options are.
void check_given(const OptimizerSpec& spec, const ParameterGroup& group, const nn::Parameter& parameter) {
  std::vector<const GroupOverride*> given;
  for (const GroupOverride& each : spec.groups) {
    if (!matches(each.pattern, parameter.name)) continue;
    if (each.kind) given.clear();
    given.push_back(&each);
  }
  if (given.empty() || group.frozen) return;
  const auto require = [](const GroupOverride& blamed, bool condition, std::string_view what) {
    if (!condition) throw InvalidArgument(fmt::format("--group {}: {}", in_quotes(blamed.pattern), what));
  };
  const OptimizerSpec& options = group.options;
  const bool adam = is_adam(options.kind), muon = options.kind == OptimizerKind::muon;
  for (const GroupOverride* each : given) {
    require(*each, !adam || !(each->momentum || each->dampening || each->nesterov),
            "momentum, dampening and nesterov require optimizer=sgd, sgdw or muon");
    require(*each, !muon || !each->dampening, "dampening requires optimizer=sgd or sgdw");
    require(*each, adam || !(each->betas || each->epsilon), "betas and eps require optimizer=adam or adamw");
  }
  require(*given.back(), adam || !options.nesterov || (options.momentum > 0 && (muon || options.dampening == 0)),
          "nesterov needs a momentum above 0 and no dampening: set nesterov=false, or momentum");
  require(*given.front(), !muon || is_weight(parameter),
          fmt::format("optimizer=muon updates matrices, and {} has one dimension: give it another optimizer",
                      parameter.name));
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos, after_star = 0;  // the last star, and where its text ends so far
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

void check_matches_any(std::string_view what, std::string_view pattern, std::span<const std::string_view> names) {
  constexpr std::size_t kListed = 6;
  if (std::ranges::any_of(names, [&](std::string_view name) { return matches(pattern, name); })) return;
  std::string letters(pattern);
  std::erase_if(letters, [](char c) { return c == '*' || c == '?'; });
  const bool is_part = !letters.empty() && std::ranges::any_of(names, [&](std::string_view name) {
    return name.find(letters) != std::string_view::npos;
  });
  throw InvalidArgument(fmt::format(
      "{} {} matches no parameter of the model, which has {}{}.{}", what, in_quotes(pattern),
      fmt::join(names.first(std::min(kListed, names.size())), ", "),
      names.size() > kListed ? fmt::format(" and {} more", names.size() - kListed) : "",
      is_part ? fmt::format(" A pattern matches whole names: try '*{}*'.", letters) : did_you_mean(letters, names)));
}

ParameterGroups parameter_groups(std::span<const nn::Parameter> parameters, const OptimizerSpec& spec) {
  std::vector<std::string_view> names;
  for (const nn::Parameter& parameter : parameters) names.push_back(parameter.name);
  for (const GroupOverride& group : spec.groups) check_matches_any("--group", group.pattern, names);
  ParameterGroups all{.groups = {run_group(spec)}, .of_parameter = {}};
  for (const nn::Parameter& parameter : parameters) {
    ParameterGroup group = all.groups.front();
    group.frozen = parameter.frozen;
    if (spec.no_bias_decay && parameter.torch_shape.rank() == 1) group.options.weight_decay = 0;
    if (spec.kind == OptimizerKind::muon && !takes_muon(parameters, parameter)) group.options.kind = OptimizerKind::sgd;
    for (const GroupOverride& given : spec.groups)
      if (matches(given.pattern, parameter.name)) apply(given, group);
    check_given(spec, group, parameter);
    drop_unused(group.options);
    if (group.frozen) group = {.options = all.groups.front().options, .frozen = true};
    const auto found = std::ranges::find(all.groups, group);
    all.of_parameter.push_back(static_cast<int>(found - all.groups.begin()));
    if (found == all.groups.end()) all.groups.push_back(std::move(group));
  }
  const auto trains_any = [&](const auto& condition) {
    return std::ranges::any_of(all.of_parameter, [&](int number) {
      const ParameterGroup& group = all.groups[static_cast<std::size_t>(number)];
      return !group.frozen && condition(group.options.kind);
    });
  };
  if (!trains_any([](OptimizerKind) { return true; }))
    throw InvalidArgument("every parameter of the model is frozen: leave some to train");
  if (spec.kind == OptimizerKind::muon && !trains_any([](OptimizerKind kind) { return kind == OptimizerKind::muon; }))
    throw InvalidArgument(
        "--optimizer muon updates the weights of hidden layers, and none is trained: use another optimizer");
  return all;
}

}  // namespace gradring::train
