// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "train/options/environment_variable.h"

namespace gradring::train {

/// The text of an option's value and its source: "command line", "GRADRING_LR", "file.toml:3".
struct Given {
  std::string text;
  std::string source;
};

/// By the option's name, as on the command line without the dashes.
using GivenOptions = std::map<std::string, Given>;

/// The options that a TOML file sets: `batch-size = 64`, or batch_size.
///
/// Errors    UsageError with file and line: no such file, more than 1 MiB, a silent pipe, invalid TOML, a key that is
///           no option (names the nearest) or is set twice, a value that is a table, a list or a date.
GivenOptions read_config_file(const std::string& path);

/// The same of a text; messages and sources call it `name`.
GivenOptions read_config_text(std::string_view text, const std::string& name);

/// The options that TOML text sets, for settings that another version may have written: other keys are ignored. Nothing
/// if the text is not TOML or sets no option.
std::optional<GivenOptions> read_known_options(std::string_view text);

/// The options that GRADRING_* variables set.
///
/// Errors    UsageError for a variable that sets none but is spelled nearly like one that does; names that one. Others
///           that begin with GRADRING_ are ignored.
GivenOptions read_variables(const Variables& environment);

/// This process's whole environment.
Variables system_variables();

}  // namespace gradring::train
