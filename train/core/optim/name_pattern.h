// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gradring::train {

/// Whether a name matches a pattern, in which `*` stands for any characters, dots included, and `?` for one character.
bool matches(std::string_view pattern, std::string_view name);

/// Checks that a pattern matches one of the names. `what` gave it, such as "--group".
///
/// Errors    InvalidArgument that suggests the nearest name and lists some.
void check_matches_any(std::string_view what, std::string_view pattern, std::span<const std::string_view> names);

}  // namespace gradring::train
