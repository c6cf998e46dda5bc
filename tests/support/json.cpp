// SPDX-License-Identifier: Apache-2.0
#include "tests/support/json.h"

#include <ostream>

namespace gradring::tests {

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }
nlohmann::json try_parse_json(std::string_view text) { return nlohmann::json::parse(text, nullptr, false); }

}  // namespace gradring::tests

void nlohmann::PrintTo(const json& value, std::ostream* out) { *out << value.dump(); }
