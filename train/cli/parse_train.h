// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include "train/config/resolve.h"

namespace gradring::train {

/// What was typed behind `gradring train`, before environment and file have their say.
struct ParsedTrain {
  OptionTexts options;
  std::optional<std::string> config_file;
  bool print_config = false;
  bool dry_run = false;
  std::string help;  ///< not empty: print it and stop
};

/// Errors    UsageError: an unknown option (names the nearest), or a value missing.
ParsedTrain parse_train(std::span<const std::string> args);

}  // namespace gradring::train
