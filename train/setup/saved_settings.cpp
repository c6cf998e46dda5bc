// SPDX-License-Identifier: Apache-2.0
#include "train/setup/saved_settings.h"

#include <toml++/toml.h>

namespace gradring::train {

std::optional<std::string> saved_settings(const Checkpoint& checkpoint) {
  const auto settings = checkpoint.about.find("settings");
  if (settings == checkpoint.about.end() || !settings->is_string()) return std::nullopt;
  return settings->get<std::string>();
}

std::string saved_setting(const Checkpoint& checkpoint, std::string_view option) {
  const auto settings = saved_settings(checkpoint);
  if (!settings) return {};
  try {
    return toml::parse(*settings)[option].value_or(std::string());
  } catch (const toml::parse_error&) {  // another program's
    return {};
  }
}

}  // namespace gradring::train
