// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "train/core/config/train_config.h"
#include "train/options/command_line.h"

namespace gradring::train {

/// What a resume has that does not repeat an option.
enum class OnResume : std::uint8_t {
  default_value,         ///< its default, as a new run would
  run,                   ///< its value in the run, if that resumes in its own directory
  checkpoint,            ///< what became of its first value: the option has no effect
  must_fit,              ///< its default, and an error if that does not fit the checkpoint
  must_fit_within_epoch  ///< the same, but for a checkpoint of the end of an epoch
};

/// What another value of an option changes in a reproducible training (--reproducible).
enum class Changes : std::uint8_t {
  nothing,   ///< the bits stay
  training,  ///< what is trained: a resume may have another value
  rounding   ///< how it is computed, and so the bits: a resume must have the same value
};

/// One setting of a run, the source of the command line (--batch-size), the environment (GRADRING_BATCH_SIZE), the
/// config file (batch-size or batch_size), --help and --print-config.
struct TrainOption {
  std::string name;   ///< as on the command line, without the dashes
  std::string value;  ///< placeholder in --help: "N", "adam|adamw|sgd"; empty for a flag
  std::string help;   ///< noun phrase with unit and allowed values; --help adds the default
  /// Reads the text of a value; a flag gets "true" or "false".
  ///
  /// Errors    UsageError that says what was expected.
  std::function<void(TrainConfig&, std::string_view)> read;
  /// The value as a TOML literal, which `read` takes back (strings without their quotes).
  std::function<std::string(const TrainConfig&)> show;

  std::string group = {};  ///< heading in --help
  OnResume on_resume = OnResume::default_value;
  Changes changes = Changes::nothing;
  char separator = 0;  ///< joins the texts of an option that is given several times; 0: the last one wins

  bool is_flag() const { return value.empty(); }
};

/// All options of `gradring train`, in the order of --help.
const std::vector<TrainOption>& train_options();

/// The option of that name, or null.
const TrainOption* find_option(std::string_view name);

/// The value of an option in a config, a string without its quotes.
std::string shown_value(const TrainOption& option, const TrainConfig& config);

/// " (default 64)"; nothing for an empty one and for flags.
std::string shown_default(const TrainOption& option);

/// --dataset, --data-dir, --image-size, --resize and --broken, for a command that has few other options of a training.
/// They set `config`, which must outlive them and gets GRADRING_DATA_DIR as its data_dir here; check_image_options checks
/// their combination.
std::vector<Option> dataset_options(TrainConfig& config);

/// " Did you mean 'batch-size'?", or nothing if no option is near.
std::string nearest_option(std::string_view name);

/// The environment variable of an option: "GRADRING_BATCH_SIZE".
std::string variable_of(const TrainOption& option);

/// A TOML basic string.
std::string quoted(const std::string& text);

}  // namespace gradring::train
