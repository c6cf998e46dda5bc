// SPDX-License-Identifier: Apache-2.0
#include "train/config/config_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/runtime/read_small_file.h"
#include "train/config/options.h"
#include "train/config/toml_text.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

constexpr std::size_t kLargestConfig = 1u << 20;

/// The text of a TOML value as the option's reader takes it: strings without quotes, numbers and booleans as written.
std::string text_of(const toml::node& node, const std::string& place) {
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_integer()) return std::to_string(value->get());
  if (const auto* value = node.as_floating_point()) return fmt::format("{}", value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  throw UsageError(place + " must be a string, a number or true or false");
}

std::string read_text(const std::string& path) {
  try {
    return read_small_file(path, kLargestConfig);
  } catch (const ReadError& error) {
    throw UsageError("--config: " + path + " " + error.what() + ": give the path of a TOML file");
  }
}

toml::table parse(const std::string& path) {
  try {
    return parse_toml(read_text(path));
  } catch (const TomlError& error) {
    throw UsageError(fmt::format("{}:{}: no TOML: {}", path, error.line(), error.what()));
  }
}

}  // namespace

GivenOptions read_config_file(const std::string& path) {
  GivenOptions given;
  for (const auto& [key, node] : parse(path)) {
    std::string name(key.str());
    std::replace(name.begin(), name.end(), '_', '-');
    const std::string line = fmt::format("{}:{}", path, key.source().begin.line);
    const std::string place = fmt::format("{}: '{}'", line, key.str());
    if (!find_option(name)) throw UsageError(place + " is no option." + nearest_option(name));
    if (given.contains(name)) throw UsageError(place + " is set twice, with - and with _");
    given[name] = {text_of(node, place), line};
  }
  return given;
}

std::optional<GivenOptions> read_known_options(std::string_view text) try {
  GivenOptions given;
  for (const auto& [key, node] : parse_toml(text))
    if (node.is_value() && find_option(key.str()))
      given[std::string(key.str())] = {text_of(node, "settings"), "settings"};
  return given.empty() ? std::nullopt : std::optional(std::move(given));
} catch (const std::runtime_error&) {  // not TOML, or a date
  return std::nullopt;
}

}  // namespace gradring::train
