// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/cli/command_line.h"
#include "train/config/resolve.h"

namespace gradring::train {

/// What was typed behind `gradring train`, before environment and file have their say.
struct ParsedTrain {
  OptionTexts options;
  std::optional<std::string> config_file;
  bool print_config = false;
  bool dry_run = false;
  bool help = false;
};

/// The options that make a TrainConfig, and --config: those that decide a training, whatever is to be done with it. They fill
/// `parsed`, which must outlive them.
std::vector<CommandOption> config_options(ParsedTrain& parsed);

/// Options as --name VALUE, --name=VALUE, or --name for a flag; - and _ are the same within a name; the last one of a name
/// wins. A value that begins with -- must be attached by =.
///
/// Errors    UsageError: an unknown option (names the nearest), a value that is missing or that a flag does not take.
ParsedTrain parse_train(std::span<const std::string> args);

/// The text of `gradring train --help`, made from the table that the parser uses.
std::string train_help();

}  // namespace gradring::train
