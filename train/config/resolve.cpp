// SPDX-License-Identifier: Apache-2.0
#include "train/config/resolve.h"

#include <fmt/format.h>

#include "train/config/config_file.h"
#include "train/config/usage_error.h"
#include "train/config/variables.h"

namespace gradring::train {
namespace {

constexpr std::string_view kCommandLine = "command line";
constexpr std::string_view kDefault = "default";

/// What wins for each option that somebody set: whoever comes later.
GivenOptions gather(const OptionTexts& command_line, const Variables& environment,
                    const std::optional<std::string>& config_file) {
  GivenOptions given = config_file ? read_config_file(*config_file) : GivenOptions();
  for (auto& [name, value] : read_variables(environment)) given[name] = value;
  for (const auto& [name, text] : command_line) given[name] = {text, std::string(kCommandLine)};
  return given;
}

void read(const Option& option, const Given& given, TrainConfig& config) {
  try {
    option.read(config, given.text);
  } catch (const InvalidArgument& error) {
    throw UsageError(given.source == kCommandLine ? error.what() : given.source + ": " + error.what());
  }
}

}  // namespace

ResolvedConfig resolve(const OptionTexts& command_line, const Variables& environment,
                       const std::optional<std::string>& config_file) {
  const GivenOptions given = gather(command_line, environment, config_file);
  ResolvedConfig resolved;
  for (const Option& option : train_options()) {
    const auto found = given.find(option.name);
    resolved.sources[option.name] = found == given.end() ? kDefault : found->second.source;
    if (found != given.end()) read(option, found->second, resolved.config);
  }
  if (resolved.config.steps > 0 && !given.contains("epochs")) resolved.config.epochs = 0;
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
