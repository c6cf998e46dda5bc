// SPDX-License-Identifier: Apache-2.0
#include "train/config/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

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

/// An empty value comes from a shell variable that is not set; in a file it is what --print-config prints.
void check_run_dir(const GivenOptions& given) {
  const auto found = given.find("run-dir");
  if (found == given.end() || !found->second.text.empty()) return;
  const std::string& source = found->second.source;
  if (source == kCommandLine || source == "GRADRING_RUN_DIR")
    throw UsageError((source == kCommandLine ? "--run-dir" : source) +
                     " is empty: give the path of a directory, or leave it out for runs/<dataset>-<model>-<time>");
}

std::string settings(const TrainConfig& config, std::span<const std::string_view> left_out) {
  std::string text;
  for (const Option& option : train_options())
    if (std::ranges::find(left_out, option.name) == left_out.end())
      text += option.name + " = " + option.show(config) + "\n";
  return text;
}

}  // namespace

ResolvedConfig resolve(const OptionTexts& command_line, const Variables& environment,
                       const std::optional<std::string>& config_file) {
  const GivenOptions given = gather(command_line, environment, config_file);
  check_run_dir(given);
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
  static constexpr std::string_view kLeftOut[] = {"run-dir", "nprocs"};
  return settings(config, kLeftOut);
}

std::string to_resolved_toml(const TrainConfig& config) {
  static constexpr std::string_view kLeftOut[] = {"run-dir", "nprocs", "resume"};
  return settings(config, kLeftOut);
}

}  // namespace gradring::train
