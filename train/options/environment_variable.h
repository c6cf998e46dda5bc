// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gradring::train {

/// The value of an environment variable, or nothing if it is unset. Programs pass system_variable, tests a table.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;
using Variables = std::vector<std::pair<std::string, std::string>>;

/// The token of the agents, or a file that holds it. Never passed on to workers.
inline constexpr const char *kTokenVariable = "GRADRING_TOKEN", *kTokenFileVariable = "GRADRING_TOKEN_FILE";

/// The value of --color: auto, always or never.
inline constexpr const char* kColorVariable = "GRADRING_COLOR";

/// Looks up this process's own environment.
inline std::optional<std::string> system_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace gradring::train
