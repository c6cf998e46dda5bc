// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "train/config/given.h"

namespace gradring::train {

/// The options that a TOML file sets: `batch-size = 64`, or batch_size.
///
/// Errors    UsageError with file and line: no such file, more than 1 MiB, a silent pipe, no TOML, a key that is no option
///           (names the nearest) or stands there twice, a value that is a table, a list or a date.
GivenOptions read_config_file(const std::string& path);

/// The options that TOML text sets, for settings that another version may have written: keys that are not options are left
/// out. Nothing if the text is not TOML or sets no option.
std::optional<GivenOptions> read_known_options(std::string_view text);

}  // namespace gradring::train
