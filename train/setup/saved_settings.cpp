// SPDX-License-Identifier: Apache-2.0
#include "train/setup/saved_settings.h"

#include <toml++/toml.h>

namespace gradring::train {

std::string saved_setting(const Checkpoint& checkpoint, std::string_view option) {
  const auto settings = checkpoint.about.find("settings");
  if (settings == checkpoint.about.end() || !settings->is_string()) return {};
  try {
    return toml::parse(settings->get<std::string>())[option].value_or(std::string());
  } catch (const toml::parse_error&) {  // another program's
    return {};
  }
}

}  // namespace gradring::train
