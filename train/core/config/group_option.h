// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/core/optim/optimizer.h"

namespace gradring::train {

/// Between the values of --group when it is repeated.
inline constexpr char kBetweenGroups = ';';

/// Reads "PATTERN:key=value,..." (docs/parameter_groups.md), several of them separated by kBetweenGroups.
///
/// Errors    UsageError that says what was expected.
std::vector<GroupOverride> parse_groups(std::string_view option, std::string_view text);
/// The inverse.
std::string show_groups(const std::vector<GroupOverride>& groups);

/// Reads "0.9,0.999".
///
/// Errors    UsageError that says what was expected.
Betas parse_betas(std::string_view option, std::string_view text);
/// The inverse.
std::string show_betas(const Betas& betas);

}  // namespace gradring::train
