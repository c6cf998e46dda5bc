// SPDX-License-Identifier: Apache-2.0
#include "train/options/path_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/options/environment_variable.h"
#include "train/options/usage_error.h"

namespace gradring::train {

bool takes_path(std::string_view placeholder) {
  constexpr std::string_view kPaths[] = {"PATH", "DIR", "FILE"};
  return std::ranges::any_of(kPaths, [&](std::string_view path) { return placeholder.ends_with(path); }) ||
         placeholder.substr(placeholder.rfind('|') + 1).starts_with("FILE.");
}

std::string expand_home(const std::string& source, std::string_view path) {
  if (!path.starts_with('~')) return std::string(path);
  const auto refuse = [&](const char* why) {
    throw UsageError(
        fmt::format("{} is '{}': {}, or put ./ before the name of a file that begins with ~", source, path, why));
  };
  if (path.size() > 1 && path[1] != '/') refuse("the home directory of a user is not looked up; write it in full");
  const std::string home = system_variable("HOME").value_or("");
  if (home.empty()) refuse("HOME is not set; write the home directory in full");
  return home + std::string(path.substr(1));
}

std::string value_text(const std::string& source, std::string_view placeholder, std::string_view text) {
  return takes_path(placeholder) ? expand_home(source, text) : std::string(text);
}

}  // namespace gradring::train
