// SPDX-License-Identifier: Apache-2.0
#include "train/config/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <toml++/toml.h>

#include "kernels/runtime/nearest_name.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

struct Given {
  std::string text;
  std::string source;
};
using GivenOptions = std::map<std::string, Given>;

const Option* find_option(const std::string& name) {
  for (const Option& option : train_options())
    if (option.name == name) return &option;
  return nullptr;
}

/// The text of a TOML value as the option's reader takes it: strings without quotes, numbers and booleans as written.
std::string text_of(const toml::node& node, const std::string& where) {
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_integer()) return std::to_string(value->get());
  if (const auto* value = node.as_floating_point()) return fmt::format("{}", value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  throw UsageError(where + " must be a string, a number or true or false");
}

GivenOptions read_file(const std::string& path) {
  GivenOptions given;
  try {
    const toml::table table = toml::parse_file(path);
    for (const auto& [key, node] : table) {
      std::string name(key.str());
      std::replace(name.begin(), name.end(), '_', '-');
      const std::string where = fmt::format("{}:{}: '{}'", path, node.source().begin.line, key.str());
      if (!find_option(name)) throw UsageError(where + " is no option." + nearest_option(name));
      given[name] = {text_of(node, where), fmt::format("{}:{}", path, node.source().begin.line)};
    }
  } catch (const toml::parse_error& error) {
    throw UsageError(fmt::format("--config: cannot read {} (line {}): {}", path, error.source().begin.line,
                                 error.description()));
  }
  return given;
}

}  // namespace

std::string nearest_option(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Option& option : train_options()) names.push_back(option.name);
  return did_you_mean(name, names);
}

ResolvedConfig resolve(const OptionTexts& command_line, const VariableLookup& environment,
                       const std::optional<std::string>& config_file) {
  const GivenOptions file = config_file ? read_file(*config_file) : GivenOptions();
  ResolvedConfig resolved;
  for (const Option& option : train_options()) {
    Given given{"", "default"};
    if (const auto in_file = file.find(option.name); in_file != file.end()) given = in_file->second;
    if (const auto variable = environment(variable_of(option))) given = {*variable, variable_of(option)};
    if (const auto typed = command_line.find(option.name); typed != command_line.end())
      given = {typed->second, "command line"};

    resolved.sources[option.name] = given.source;
    if (given.source == "default") continue;
    try {
      option.read(resolved.config, given.text);
    } catch (const InvalidArgument& error) {
      throw UsageError(given.source == "command line" ? error.what() : given.source + ": " + error.what());
    }
  }
  validate(resolved.config);
  return resolved;
}

std::string print_config(const ResolvedConfig& resolved) {
  std::string text;
  for (const Option& option : train_options())
    text += fmt::format("{:<40} # {}\n", option.name + " = " + option.show(resolved.config),
                        resolved.sources.at(option.name));
  return text;
}

std::string to_toml(const TrainConfig& config) {
  std::string text;
  for (const Option& option : train_options())
    if (option.name != "run-dir" && option.name != "nprocs") text += option.name + " = " + option.show(config) + "\n";
  return text;
}

}  // namespace gradring::train
