// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/cli/command_line.h"

namespace gradring::train {

/// --data-dir D for the actions of `gradring data`; it is read into `data_dir`, which gets its default here: what
/// GRADRING_DATA_DIR says, else the folder `datasets`.
CommandOption data_dir_option(std::string& data_dir);

/// The one data set that an action is about.
///
/// Errors    UsageError if there is none, or more than one.
const std::string& only_name(const CommandWords& words, const CommandLine& line);

/// "162.2 MB".
std::string megabytes(std::uint64_t bytes);

}  // namespace gradring::train
