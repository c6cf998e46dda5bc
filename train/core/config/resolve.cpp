// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "kernels/base/file.h"
#include "kernels/base/printable.h"
#include "train/core/config/option_sources.h"
#include "train/core/config/presets.h"
#include "train/core/ddp/parameter_groups.h"
#include "train/options/parse_value.h"
#include "train/options/path_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr std::string_view kCommandLine = "command line";
constexpr std::string_view kDefault = "default";

/// Adds the options of a source to those of sources that it overrides. --model overrides the text of another file, too.
void add(const GivenOptions& options, GivenOptions& given) {
  if (options.contains("model")) given.erase("model-text");
  for (const auto& [name, value] : options) given[name] = value;
}

/// The options that were given; later sources override earlier ones, all of them a preset that one names.
GivenOptions gather(const OptionTexts& command_line, const Variables& environment,
                    const std::optional<std::string>& config_file) {
  GivenOptions given = config_file ? read_config_file(*config_file) : GivenOptions();
  add(read_variables(environment), given);
  GivenOptions typed;
  for (const auto& [name, text] : command_line) typed[name] = {text, std::string(kCommandLine)};
  add(typed, given);
  const auto preset = given.find("preset");
  if (preset == given.end() || preset->second.text.empty()) return given;
  GivenOptions all = preset_options(preset->second.text);
  add(given, all);
  return all;
}

void read(const TrainOption& option, const Given& given, TrainConfig& config) {
  try {
    option.read(config, value_text("--" + option.name, option.value, given.text));
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
  for (const TrainOption& option : train_options())
    if (std::ranges::find(left_out, option.name) == left_out.end())
      text += option.name + " = " + option.show(config) + "\n";
  return text;
}

constexpr std::string_view kNotCompared[] = {"preset",  "resume", "weights",  "reinit",    "optimizer-state",
                                             "run-dir", "nprocs", "progress", "model-text"};

std::optional<TrainConfig> config_in(std::string_view text) {
  const auto given = read_known_options(text);
  if (!given) return std::nullopt;
  TrainConfig config;
  for (const auto& [name, value] : *given) try {
      read_saved(config, name, value.text);
    } catch (const InvalidArgument&) {  // a value of another version
    }
  return config;
}

/// A TOML literal as a person writes it: "cpu" without its quotes.
std::string shown(std::string literal) {
  if (literal.size() > 2 && literal.front() == '"') return literal.substr(1, literal.size() - 2);
  return literal;
}

ResolvedConfig read_all(const GivenOptions& given) {
  check_run_dir(given);
  ResolvedConfig resolved;
  for (const TrainOption& option : train_options()) {
    const auto found = given.find(option.name);
    resolved.sources[option.name] = found == given.end() ? kDefault : found->second.source;
    if (found != given.end()) read(option, found->second, resolved.config);
  }
  if (resolved.config.steps > 0 && !given.contains("epochs")) resolved.config.epochs = 0;
  if (!given.contains("timeout")) resolved.config.timeout = default_timeout(resolved.config.simulate_gpu);
  return resolved;
}

/// Checks that every pattern of --reinit matches a tensor of the model.
void check_reinit(const nn::Model& model, const std::string& patterns) {
  if (patterns.empty()) return;
  const std::vector<nn::Parameter> tensors = nn::tensors_of(model);
  std::vector<std::string_view> names;
  for (const nn::Parameter& tensor : tensors) names.push_back(tensor.name);
  for (const std::string& pattern : comma_separated(patterns)) check_matches_any("--reinit", pattern, names);
}

void complete_model(TrainConfig& config) {
  if (!is_model_file(config.model))
    config.model_text.clear();
  else if (config.model_text.empty()) {
    std::error_code ignored;
    if (config.resume != "none" && !std::filesystem::exists(config.model, ignored)) return;
    config.model_text = read_model_file(config.model);
  }
  check_model(config);
}

}  // namespace

std::string read_model_file(const std::string& path) {
  constexpr std::size_t kLargest = 256u << 10;  // escaped in a config file, it is smaller than the largest of these
  std::string text;
  try {
    text = read_small_file(path, kLargest);
  } catch (const ReadError& error) {
    throw UsageError("model file " + printable(path) + " " + error.what() +
                     ": give the path of a model file of at most 256 KiB (docs/models.md)");
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw UsageError("model file " + printable(path) + " is empty: give the path of a model file (docs/models.md)");
  return text;
}

nn::ModelText named_model(const std::string& name) {
  if (is_model_file(name)) return {name, read_model_file(name)};
  return nn::built_in(name).name;
}

nn::Model model_for(const TrainConfig& config) {
  const data::DatasetFacts facts = facts_of(config);
  return nn::make_model(model_of(config), facts.shape, facts.classes());
}

void check_model(const TrainConfig& config) {
  const nn::Model model = model_for(config);
  data::check_fits(config.augment, model.sample);
  parameter_groups(nn::parameters_of(model), config.optimizer);
  check_reinit(model, config.reinit);
}

ResolvedConfig resolve(const OptionTexts& command_line, const Variables& environment,
                       const std::optional<std::string>& config_file, const std::optional<data::DatasetFacts>& facts) {
  ResolvedConfig resolved = read_all(gather(command_line, environment, config_file));
  resolved.config.facts = facts;
  validate(resolved.config);
  resolved.config.facts = facts_of(resolved.config);
  complete_model(resolved.config);
  return resolved;
}

ResolvedConfig resolve_own(const OwnTraining& own, const OptionTexts& options, const Variables& environment,
                           const std::optional<std::string>& config_file) {
  GivenOptions given = gather(options, environment, config_file);
  for (const char* name : {"dataset", "data-dir", "model", "model-text"}) given.erase(name);
  ResolvedConfig resolved = read_all(given);
  TrainConfig& config = resolved.config;
  config.dataset = own.dataset.name;
  config.facts = own.dataset;
  config.model = own.model.name;
  config.model_text = own.model.text;
  validate(config);
  check_model(config);
  return resolved;
}

void read_saved(TrainConfig& config, std::string_view option, std::string_view text) {
  if (option == "dataset")
    config.dataset = text;
  else
    find_option(option)->read(config, text);
}

std::string print_config(const ResolvedConfig& resolved) {
  std::string text;
  for (const TrainOption& option : train_options())
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

void keep_settings(std::string_view before, TrainConfig& config) {
  const auto earlier = read_known_options(before);
  if (!earlier) return;
  for (const TrainOption& option : train_options())
    if (option.on_resume == OnResume::run && option.show(config) == option.show(TrainConfig()))
      if (const auto saved = earlier->find(option.name); saved != earlier->end())
        option.read(config, saved->second.text);
}

std::optional<std::vector<ChangedOption>> changed_options(std::string_view before, const TrainConfig& given,
                                                          const TrainConfig& resolved) {
  const auto earlier = config_in(before);
  if (!earlier) return std::nullopt;
  std::vector<ChangedOption> changes;
  for (const TrainOption& option : train_options()) {
    if (std::ranges::find(kNotCompared, option.name) != std::end(kNotCompared)) continue;
    const std::string was = option.show(*earlier), is = option.show(resolved);
    if (was != is && was != option.show(given)) changes.push_back({option.name, shown(was), shown(is)});
  }
  return changes;
}

std::string to_string(std::span<const ChangedOption> changes) {
  std::string text;
  for (const auto& [name, before, now] : changes)
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", name, before, now);
  return text;
}

}  // namespace gradring::train
