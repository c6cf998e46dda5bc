// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gradring::train {

/// One word behind a command that has several: `fetch` in `gradring data fetch`.
struct Subcommand {
  std::string_view name;
  std::string_view help;
  void (*run)(std::span<const std::string> args);
};

/// A command that does one of several things.
struct CommandGroup {
  std::string_view command;  ///< "gradring data", for messages
  std::string_view purpose;  ///< one line
  std::string_view kind;     ///< what its subcommands are: "action"
  std::string_view usage;    ///< what stands behind the command: "ACTION [NAME] [OPTIONS]"
  std::span<const Subcommand> subcommands;
};

/// Runs the subcommand that the first word names with the rest, or prints the group's help. No word at all: help on stderr.
/// Returns the exit code, kOk or kUsage.
///
/// Errors    UsageError for a name that is not there (names the nearest); what the subcommand throws.
int run_subcommand(const CommandGroup& group, std::span<const std::string> args);

}  // namespace gradring::train
