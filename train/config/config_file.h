// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/config/given.h"

namespace gradring::train {

/// The options that a TOML file sets: `batch-size = 64`, or batch_size.
///
/// Errors    UsageError with file and line: no such file, no TOML, a key that is no option (names the nearest) or stands
///           there twice, a value that is a table, a list or a date.
GivenOptions read_config_file(const std::string& path);

}  // namespace gradring::train
