// SPDX-License-Identifier: Apache-2.0
#include "train/options/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <vector>

#include "kernels/base/commit.h"
#include "kernels/base/file.h"
#include "kernels/base/in_quotes.h"
#include "kernels/base/nearest_name.h"
#include "train/options/help.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

CommandLine help_line(bool& man) {
  return {.command = "gradring help",
          .purpose = "help for a command, or the list of commands",
          .usage = {"gradring help [COMMAND [SUBCOMMAND]]", "gradring help --man COMMAND | man -l -"},
          .options = {switch_option("man", "output as a manual page in troff", man)},
          .takes_words = true};
}

struct VersionOptions {};

CommandLine command_line(VersionOptions&) {
  return {.command = "gradring version", .purpose = "version and commit of this program", .options = {}};
}

void run(const VersionOptions&) { print_text("gradring {} (commit {})\n", GRADRING_VERSION, kCommit); }

/// A line for each of its subcommands.
std::string list_of(const Command& group) {
  std::string lines;
  for (const Command* each : group.subcommands) lines += fmt::format("  {:<12} {}\n", each->name, each->help);
  return lines;
}

std::string group_help(const Command& group, const std::string& name) {
  std::string text = fmt::format("{0}: {1}\n\nUsage: {0} {2}\n\n{3}", name, group.help, group.usage, list_of(group));
  text += fmt::format("\nRun {} {} --help for its options.\n", name, group.usage.substr(0, group.usage.find(' ')));
  if (!group.notes.empty()) text += fmt::format("{}\n", group.notes);
  return text;
}

const Command& find_subcommand(const Command& group, std::string_view name, const std::string& group_name) {
  std::vector<std::string_view> names;
  for (const Command* each : group.subcommands) {
    if (each->name == name) return *each;
    names.push_back(each->name);
  }
  const std::string nearest = did_you_mean(name, names);
  const std::string advice =
      nearest.empty() ? fmt::format(", expected one of {}.", fmt::join(names, ", ")) : "." + nearest;
  throw UsageError(fmt::format("there is no {} {}{} Try {} --help", group.kind, in_quotes(name), advice, group_name));
}

/// The command line of a command, or of a group as its list of subcommands.
CommandLine line_of(const Command& command, const std::string& name) {
  if (command.describe != nullptr) return command.describe();
  return {.command = name,
          .purpose = std::string(command.help),
          .usage = {fmt::format("{} {}", name, command.usage)},
          .options = {},
          .notes = "Subcommands:\n" + list_of(command)};
}

void collect(const Command& command, const std::string& name, std::vector<CommandLine>& lines) {
  lines.push_back(line_of(command, name));
  for (const Command* each : command.subcommands) collect(*each, fmt::format("{} {}", name, each->name), lines);
}

/// Runs the subcommand that the first word names, or prints the help of the group: on stderr if there is no word at
/// all. `name`, of the group, becomes that of a command of the program.
int run_group(const Command& program, const Command& group, std::string& name, Arguments args, KeptAlive& kept) {
  if (args.empty()) {
    print_to_stderr(group_help(group, name));
    return kUsage;
  }
  const std::string& word = args.front();
  if (word == "--help" || word == "-h" || (word == "help" && &group != &program)) {
    print_shown(group_help(group, name));
    return kOk;
  }
  const Command& command = find_subcommand(group, word == "--version" ? "version" : word, name);
  const auto rest = args.subspan(1);
  if (&group == &program || !command.subcommands.empty()) name += fmt::format(" {}", command.name);
  return command.subcommands.empty() ? command.run(rest, kept) : run_group(program, command, name, rest, kept);
}

}  // namespace

int run_program(const Command& program, Arguments args) {
  return run_command([&](std::string& name, KeptAlive& kept) { return run_group(program, program, name, args, kept); });
}

void reserve_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) == -1)
      ::open("/dev/null", O_RDONLY);  // takes the lowest free number; writes fail with EBADF
}

CommandLine help_command_line() {
  bool unused = false;
  return help_line(unused);
}

CommandLine completions_command_line() {
  return {.command = "gradring completions",
          .purpose = "completion script for a shell",
          .usage = {"gradring completions bash|zsh|fish"},
          .options = {},
          .takes_words = true,
          .notes = "For the current bash:\n  source <(gradring completions bash)\n"};
}

int run_help(const Command& program, Arguments args) {
  bool man = false;
  const auto words = words_or_help(help_line(man), args);
  if (!words) return kOk;
  const Command* command = &program;
  std::string name(program.name);
  for (const std::string& word : *words) {
    command = &find_subcommand(*command, word, name);
    name += " " + word;
  }
  if (man)
    print_shown(manual_page(line_of(*command, name), GRADRING_VERSION));
  else if (command->subcommands.empty())
    print_shown(help_of(line_of(*command, name)));
  else
    print_shown(group_help(*command, name));
  return kOk;
}

int run_completions(const Command& program, Arguments args) {
  const auto words = words_or_help(completions_command_line(), args);
  if (!words) return kOk;
  std::vector<CommandLine> lines;
  collect(program, std::string(program.name), lines);
  print_shown(completions(only_word(*words, "gradring completions SHELL"), lines));
  return kOk;
}

const Command kVersionCommand = make_command<VersionOptions>("version", "version and commit of this program");

}  // namespace gradring::train
