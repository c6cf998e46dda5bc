// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "train/config/options.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

/// Option values as text, by option name: what the command line said.
using OptionTexts = std::map<std::string, std::string>;

/// A config and where each value came from: "command line", "GRADRING_LR", "file.toml:3" or "default".
struct ResolvedConfig {
  TrainConfig config;
  std::map<std::string, std::string> sources;
};

/// Settles every option: command line, then GRADRING_* variables, then the file, then the default. Where --steps is given
/// and --epochs is not, the steps decide alone.
///
/// Errors    UsageError: an unknown key or variable (names the nearest and the line), a value that does not fit, values that
///           do not fit each other, an empty --run-dir, or a file that is not there or no TOML.
ResolvedConfig resolve(const OptionTexts& command_line, const Variables& environment,
                       const std::optional<std::string>& config_file);

/// The config as TOML, each value with its source behind it: what --print-config shows.
std::string print_config(const ResolvedConfig& resolved);

/// The config as TOML that --config takes back. Leaves out where the run happens (run-dir, nprocs).
std::string to_toml(const TrainConfig& config);

/// The same without `resume`, which says where one start of the run began: config.resolved.toml.
std::string to_resolved_toml(const TrainConfig& config);

}  // namespace gradring::train
