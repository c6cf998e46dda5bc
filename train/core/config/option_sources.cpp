// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/option_sources.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "data/datasets/image_cache.h"
#include "kernels/base/file.h"
#include "kernels/base/nearest_name.h"
#include "kernels/runtime/cpu_level.h"
#include "nn/models/toml_text.h"
#include "train/core/config/options.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr std::size_t kLargestConfig = 1u << 20;

/// The text of a TOML value as the option's reader takes it: strings without quotes, numbers and booleans as written.
std::string text_of(const toml::node& node, const std::string& location) {
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_integer()) return std::to_string(value->get());
  if (const auto* value = node.as_floating_point()) return fmt::format("{}", value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  throw UsageError(location + " has a value of another type: expected a string, a number, true or false");
}

std::string read_text(const std::string& path) {
  try {
    return read_small_file(path, kLargestConfig);
  } catch (const ReadError& error) {
    throw UsageError("--config: " + path + " " + error.what() + ": give the path of a TOML file");
  }
}

/// `name`: of the text, for messages.
toml::table parse(std::string_view text, const std::string& name) {
  try {
    return nn::parse_toml(text);
  } catch (const nn::TomlError& error) {
    throw UsageError(fmt::format("{}:{}: invalid TOML: {}", name, error.line(), error.what()));
  }
}

constexpr std::string_view kPrefix = "GRADRING_";
/// Variables that are not options: from launcher to worker, and what is read before options are.
constexpr std::string_view kNoOptions[] = {
    "GRADRING_STORE",   "GRADRING_PROGRESS_FILE",   "GRADRING_NODE_ADDRESS", kTokenVariable,
    kTokenFileVariable, kernels::kCpuLevelVariable, data::kCacheVariable,    kColorVariable};

/// Options that have no variable.
constexpr std::string_view kCommandLineOnly[] = {"config", "print-config", "dry-run", "help"};

void refuse_command_line_only(std::string_view name) {
  for (const std::string_view option : kCommandLineOnly)
    if (name == variable_of(TrainOption{.name = std::string(option)}))
      throw UsageError(
          fmt::format("{} in the environment sets no option: --{} is accepted on the command line only", name, option));
}

/// Abbreviations are no typing errors: the build's GRADRING_CUDA is not --cuda-graph.
void refuse_typo(std::string_view name) {
  std::vector<std::string> known;
  for (const TrainOption& option : train_options()) known.push_back(variable_of(option).substr(kPrefix.size()));
  for (const char* variable : {kernels::kCpuLevelVariable, data::kCacheVariable})
    known.emplace_back(std::string_view(variable).substr(kPrefix.size()));
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view nearest = nearest_spelling(name.substr(kPrefix.size()), views);
  if (nearest.empty()) return;
  throw UsageError(std::string(name) + " in the environment sets no option. Did you mean '" + std::string(kPrefix) +
                   std::string(nearest) + "'?");
}

}  // namespace

GivenOptions read_config_text(std::string_view text, const std::string& name) {
  GivenOptions given;
  for (const auto& [key, node] : parse(text, name)) {
    std::string option(key.str());
    std::replace(option.begin(), option.end(), '_', '-');
    const std::string line = fmt::format("{}:{}", name, key.source().begin.line);
    const std::string location = fmt::format("{}: '{}'", line, key.str());
    if (!find_option(option)) throw UsageError(location + " is not an option." + nearest_option(option));
    if (given.contains(option)) throw UsageError(location + " is set twice, with - and with _");
    given[option] = {text_of(node, location), line};
  }
  return given;
}

GivenOptions read_config_file(const std::string& path) { return read_config_text(read_text(path), path); }

std::optional<GivenOptions> read_known_options(std::string_view text) try {
  GivenOptions given;
  for (const auto& [key, node] : nn::parse_toml(text))
    if (node.is_value() && find_option(key.str()))
      given[std::string(key.str())] = {text_of(node, "settings"), "settings"};
  return given.empty() ? std::nullopt : std::optional(std::move(given));
} catch (const std::runtime_error&) {  // not TOML, or a date
  return std::nullopt;
}

GivenOptions read_variables(const Variables& environment) {
  std::map<std::string, std::string> option_of;
  for (const TrainOption& option : train_options()) option_of[variable_of(option)] = option.name;

  GivenOptions given;
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(kPrefix) || std::ranges::find(kNoOptions, name) != std::end(kNoOptions)) continue;
    if (const auto option = option_of.find(name); option != option_of.end())
      given[option->second] = {value, name};
    else {
      refuse_command_line_only(name);
      refuse_typo(name);
    }
  }
  return given;
}

Variables system_variables() {
  Variables variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t end = text.find('=');
    if (end != std::string_view::npos) variables.emplace_back(text.substr(0, end), text.substr(end + 1));
  }
  return variables;
}

}  // namespace gradring::train
