// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string_view>

namespace gradring::tests {

/// nlohmann::json::parse, compiled once: its parser costs each file that calls it half a second.
nlohmann::json parse_json(std::string_view text);
/// The same; a discarded value if `text` is not JSON.
nlohmann::json try_parse_json(std::string_view text);

}  // namespace gradring::tests

namespace nlohmann {

/// For GoogleTest, likewise.
void PrintTo(const json& value, std::ostream* out);

}  // namespace nlohmann
