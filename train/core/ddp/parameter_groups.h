// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "nn/layers/parameter.h"
#include "train/core/optim/optimizer.h"

namespace gradring::train {

/// Whether a name matches a pattern, in which `*` stands for any characters, dots included, and `?` for one character.
bool matches(std::string_view pattern, std::string_view name);

/// Checks that a pattern matches one of the names. `what` gave it, such as "--group".
///
/// Errors    InvalidArgument that suggests the nearest name and lists some.
void check_matches_any(std::string_view what, std::string_view pattern, std::span<const std::string_view> names);

/// The parameter groups of a training.
struct ParameterGroups {
  std::vector<ParameterGroup> groups;  ///< the first has the run's options, and may have no parameters
  std::vector<int> of_parameter;       ///< index of a group, for each parameter

  const ParameterGroup& of(std::size_t parameter) const {
    return groups[static_cast<std::size_t>(of_parameter[parameter])];
  }
};

/// The groups that the options make of a model's parameters, in the order of their first parameters: parameters with
/// equal options are one group, and so are frozen ones. --no-bias-decay comes first, then each --group whose pattern
/// matches overrides the options that it gives. A group whose optimizer lacks an option of the run, as Adam lacks
/// momentum, does not take it.
/// --optimizer muon is for the weights of at least two dimensions but the last; SGD updates the others.
///
/// Errors    InvalidArgument, which names the --group: its pattern matches nothing, or it gives options that its
///           optimizer lacks or that contradict each other; all are frozen, or --optimizer muon updates none.
ParameterGroups parameter_groups(std::span<const nn::Parameter> parameters, const OptimizerSpec& spec);

}  // namespace gradring::train
