// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace gradring::train {

/// Parses JSON of unknown origin. A parser needs stack for each level when what it has read is copied, time for each pair
/// of members of an object, and memory for each value: texts with more than 64 levels, 1,024 members of one object or
/// about a million values are not parsed.
///
/// Returns   nothing if `text` is not JSON or exceeds this, and why in `problem`.
/// Cost      memory about 16 times that of `text` at most, and at most 64 MiB.
std::optional<nlohmann::ordered_json> parse_bounded(std::string_view text, std::string& problem);

/// A value as a message shows it: numbers and short texts themselves.
std::string shown_value(const nlohmann::ordered_json& value);

}  // namespace gradring::train
