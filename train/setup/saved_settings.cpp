// SPDX-License-Identifier: Apache-2.0
#include "train/setup/saved_settings.h"

#include "train/config/toml_text.h"

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
    return parse_toml(*settings)[option].value_or(std::string());
  } catch (const TomlError&) {  // another program's
    return {};
  }
}

}  // namespace gradring::train
