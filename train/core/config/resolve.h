// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/core/config/options.h"
#include "train/options/environment_variable.h"

namespace gradring::train {

/// Option values of the command line as text, by option name.
using OptionTexts = std::map<std::string, std::string>;

/// A config and the source of each value: "command line", "GRADRING_LR", "file.toml:3" or "default".
struct ResolvedConfig {
  TrainConfig config;
  std::map<std::string, std::string> sources;
};

/// The text of a model file.
///
/// Errors    UsageError if it cannot be read, is empty, not UTF-8, or has more than 256 KiB.
std::string read_model_file(const std::string& path);

/// A built-in model, or that of a file, as --model names it.
///
/// Errors    UsageError as read_model_file, InvalidArgument for an unknown name: suggests the nearest.
nn::ModelText named_model(const std::string& name);

/// The model for the images and classes of the dataset.
///
/// Errors    InvalidArgument, as nn::make_model.
nn::Model model_for(const TrainConfig& config);
/// Checks that there is one, that the patterns of --group and --reinit fit it, and that --augment fits its images.
///
/// Errors    also as parameter_groups and data::check_fits.
void check_model(const TrainConfig& config);

/// Resolves every option: command line before GRADRING_* variables, the file, the preset and the default. If --steps is
/// given and --epochs is not, epochs is 0. Reads --model's file, and checks the model; if the file is missing in a
/// resume, its text stays empty, and take_saved_model of core/setup finds it. `facts` are those of the data set, if a
/// checkpoint has them: its files are not needed then.
///
/// Errors    as read_model_file, check_model and data::facts_of; UsageError: an unknown key or variable (names the
///           nearest and the line), an invalid value, options that contradict each other, an empty --run-dir, or a file
///           that is missing or not TOML.
ResolvedConfig resolve(const OptionTexts& command_line, const Variables& environment,
                       const std::optional<std::string>& config_file,
                       const std::optional<data::DatasetFacts>& facts = std::nullopt);

/// What a program on the C++ API trains.
struct OwnTraining {
  data::DatasetFacts dataset;
  nn::ModelText model;
};

/// The same for a program that has a data set and a model: the options dataset, data-dir and model count in no source.
///
/// Errors    as resolve.
ResolvedConfig resolve_own(const OwnTraining& own, const OptionTexts& options, const Variables& environment,
                           const std::optional<std::string>& config_file);

/// The output of --print-config: TOML with the source of each value as a comment.
std::string print_config(const ResolvedConfig& resolved);

/// Reads an option's value as a run saved it. Its data set may be one that only a program on the C++ API has.
///
/// Errors    UsageError, as TrainOption::read.
void read_saved(TrainConfig& config, std::string_view option, std::string_view text);

/// The config as TOML that --config takes back. Leaves out run-dir and nprocs.
std::string to_toml(const TrainConfig& config);

/// The same without `resume`, which belongs to one start of the run only: config.resolved.toml.
std::string to_resolved_toml(const TrainConfig& config);

/// Gives options that a resume keeps (OnResume::run) and that have their default the value in `before`, the settings of
/// the run as TOML.
void keep_settings(std::string_view before, TrainConfig& config);

/// An option whose value differs from that of an earlier start of the same run.
struct ChangedOption {
  std::string name;
  std::string before;
  std::string now;
};

/// The options that differ between `before`, the settings of an earlier start as TOML (to_toml or to_resolved_toml),
/// and a config, given as the user wrote it and as it was resolved: a value that equals either is not a change. Leaves
/// out options that say where a run starts and how it is shown (preset, resume, weights, reinit, optimizer-state,
/// run-dir, nprocs, progress). An option that `before` does not set has its default there; unknown keys and values are
/// ignored. Nothing if `before` is not TOML or sets no option.
std::optional<std::vector<ChangedOption>> changed_options(std::string_view before, const TrainConfig& given,
                                                          const TrainConfig& resolved);

/// "epochs 2 -> 3, lr 0.001 -> 0.002"
std::string to_string(std::span<const ChangedOption> changes);

}  // namespace gradring::train
