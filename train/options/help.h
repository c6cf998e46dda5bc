// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "train/options/command_line.h"

namespace gradring::train {

/// The text of `COMMAND --help`: purpose, synopsis, options by group, notes; at most 80 columns.
std::string help_of(const CommandLine& line);

/// The same as a manual page of section 1 in troff. `version` stands in its footer.
std::string manual_page(const CommandLine& line, std::string_view version);

/// A completion script for bash, zsh or fish: names of commands and options, choices, and paths where an option takes
/// one. `commands` are all of the program's, groups before their subcommands ("gradring bench", "gradring bench step").
///
/// Errors    UsageError for another shell (names the nearest).
std::string completions(std::string_view shell, std::span<const CommandLine> commands);

}  // namespace gradring::train
