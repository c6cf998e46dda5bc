// SPDX-License-Identifier: Apache-2.0
// A program as a tree of commands: what runs it, and the commands that tell of the others.
#pragma once

#include <string>
#include <string_view>

#include "train/options/commands.h"

namespace gradring::train {

/// A command that consists of others. `usage` follows its name; `kind` is what the others are called.
constexpr Command group_of(std::string_view name, std::string_view help, std::span<const Command* const> subcommands,
                           std::string_view usage, std::string_view kind = "action") {
  return {.name = name, .help = help, .subcommands = subcommands, .usage = usage, .kind = kind};
}

/// Runs `program ARGS`: the command that the first argument names, or the help of the program.
///
/// Returns   the exit code.
int run_program(const Command& program, Arguments args);

/// Opens /dev/null as each of stdin, stdout and stderr that is closed. Otherwise the next file or shared memory that is
/// opened would get its number, and receive what is printed.
void reserve_standard_streams();

CommandLine help_command_line();
CommandLine completions_command_line();
int run_help(const Command& program, Arguments args);
int run_completions(const Command& program, Arguments args);

extern const Command kVersionCommand;

/// `help` and `completions` of a program, of whose table they are a part.
template <const Command& kProgram>
inline constexpr Command kHelpOf{.name = "help",
                                 .help = "help for a command, or its manual page",
                                 .run = [](Arguments args, KeptAlive&) { return run_help(kProgram, args); },
                                 .describe = help_command_line};
template <const Command& kProgram>
inline constexpr Command kCompletionsOf{
    .name = "completions",
    .help = "completion script for bash, zsh or fish",
    .run = [](Arguments args, KeptAlive&) { return run_completions(kProgram, args); },
    .describe = completions_command_line};

}  // namespace gradring::train
