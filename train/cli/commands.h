// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/runtime/error.h"
#include "train/options/command_line.h"

namespace gradring::train {

using Arguments = std::span<const std::string>;

/// A command of the program, or a subcommand of one: `fetch` in `gradring data fetch`.
struct Command {
  std::string_view name;
  std::string_view help;                ///< one line for the list of commands
  int (*run)(Arguments) = nullptr;      ///< returns the exit code; null if there are subcommands
  CommandLine (*describe)() = nullptr;  ///< its syntax; the readers must not be called
  std::span<const Command* const> subcommands = {};
  std::string_view usage = {};  ///< what follows the name of a command with subcommands
  std::string_view kind = {};   ///< what its subcommands are: "action"
};

/// Runs `gradring ARGS`, or `gradring launch ARGS` if the program is called gradrun. An error is printed once on
/// stderr, or left for the launcher to print.
///
/// Returns   the exit code.
/// Errors    a failure to write standard output, for finish_standard_output.
int run_program(Arguments args, std::string_view program);

/// Runs `body`; reports what it throws as run_program does, behind `name` ("gradring eval"), while the caller's
/// variables still exist.
int run_command(std::string_view name, const std::function<int()>& body);

/// Parses a command line. Returns the arguments that are not options, or nothing if help was asked for and printed.
std::optional<std::vector<std::string>> words_or_help(const CommandLine& line, Arguments args);

/// The one argument that a command takes; `placeholder` names it.
///
/// Errors    UsageError if there is none, or more than one.
const std::string& only_word(const std::vector<std::string>& words, const CommandLine& line,
                             std::string_view placeholder);

/// Command::describe of a command whose options are read into an `Options`.
template <class Options, CommandLine (*line)(Options&)>
CommandLine describe() {
  Options unused;
  return line(unused);
}

extern const Command kTrainCommand, kPlanCommand, kEvalCommand, kPredictCommand, kExportCommand, kDoctorCommand;
extern const Command kCkptLs, kCkptVerify, kCkptDiff, kCkptInspect, kCkptPrune;
extern const Command kDataFetch, kDataVerify, kDataInfo;
extern const Command kBenchKernels, kBenchStep, kBenchCompare, kBenchAllReduce, kBenchLaunch, kBenchLayouts,
    kBenchRestart, kBenchLoader;

}  // namespace gradring::train
