// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/train_config.h"

namespace gradring::train {

/// One thing that a user can set, in one place for the command line (--batch-size), the environment (GRADRING_BATCH_SIZE),
/// the config file (batch-size or batch_size), --help and --print-config.
struct Option {
  std::string name;   ///< as on the command line, without the dashes
  std::string value;  ///< what --help calls the value: "N", "adam|adamw|sgd"; empty for a flag
  std::string help;
  /// Reads the text of a value; a flag gets "true" or "false".
  ///
  /// Errors    UsageError that says what was expected.
  std::function<void(TrainConfig&, std::string_view)> read;
  /// The value as a TOML literal, which `read` takes back (strings without their quotes).
  std::function<std::string(const TrainConfig&)> show;

  /// What joins the texts of an option that is given several times; 0: the last one wins.
  char separator = 0;

  bool is_flag() const { return value.empty(); }
};

/// All options of `gradring train`, in the order of --help.
const std::vector<Option>& train_options();

/// The option of that name, or null.
const Option* find_option(std::string_view name);

/// " Did you mean 'batch-size'?", or nothing if no option is near.
std::string nearest_option(std::string_view name);

/// The environment variable of an option: "GRADRING_BATCH_SIZE".
std::string variable_of(const Option& option);

}  // namespace gradring::train
