// SPDX-License-Identifier: Apache-2.0
#include "train/app/program/program.h"

#include <fmt/format.h>

#include "kernels/base/commit.h"
#include "kernels/base/file.h"
#include "kernels/base/nearest_name.h"
#include "train/app/commands/commands.h"
#include "train/bench/commands/commands.h"
#include "train/launch/launcher.h"
#include "train/launch/options/parse_launch.h"
#include "train/options/help.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr std::string_view kPurpose = "data-parallel training on CPUs and GPUs, readable from end to end";

struct HelpOptions {
  bool man = false;
};

CommandLine command_line(HelpOptions& options) {
  return {.command = "gradring help",
          .purpose = "help for a command, or the list of commands",
          .usage = {"gradring help [COMMAND [SUBCOMMAND]]", "gradring help --man COMMAND | man -l -"},
          .options = {switch_option("man", "output as a manual page in troff", options.man)},
          .takes_words = true};
}

struct VersionOptions {};

CommandLine command_line(VersionOptions&) {
  return {.command = "gradring version", .purpose = "version and commit of this program", .options = {}};
}

struct CompletionsOptions {};

CommandLine command_line(CompletionsOptions&) {
  return {.command = "gradring completions",
          .purpose = "completion script for a shell",
          .usage = {"gradring completions bash|zsh|fish"},
          .options = {},
          .takes_words = true,
          .notes = "For the current bash:\n  source <(gradring completions bash)\n"};
}

void run(const HelpOptions& options, const Words& words);
void run(const VersionOptions&);
void run(const CompletionsOptions&, const Words& words);

constexpr const Command* kCkptActions[] = {&kCkptLs, &kCkptVerify, &kCkptDiff, &kCkptInspect, &kCkptPrune};
constexpr const Command* kRunsActions[] = {&kRunsLs, &kRunsShow, &kRunsCompare, &kRunsRm, &kRunsExport};
constexpr const Command* kDataActions[] = {&kDataFetch, &kDataVerify, &kDataInfo};
constexpr const Command* kTraceActions[] = {&kTraceSummary};
constexpr const Command* kBenchmarks[] = {&kBenchKernels, &kBenchStep,    &kBenchCompare, &kBenchAllReduce,
                                          &kBenchLaunch,  &kBenchRestart, &kBenchLoader,  &kBenchParallel,
                                          &kBenchScaling, &kBenchDiff};

constexpr Command kCkptCommand{.name = "ckpt",
                               .help = "checkpoints: list, verify, compare, inspect, prune",
                               .subcommands = kCkptActions,
                               .usage = "ACTION PATH... [OPTIONS]",
                               .kind = "action"};
constexpr Command kRunsCommand{.name = "runs",
                               .help = "runs: list, show, compare, remove, export as CSV",
                               .subcommands = kRunsActions,
                               .usage = "ACTION RUN... [OPTIONS]",
                               .kind = "action"};
constexpr Command kDataCommand{.name = "data",
                               .help = "datasets: fetch, verify, describe",
                               .subcommands = kDataActions,
                               .usage = "ACTION [NAME] [OPTIONS]",
                               .kind = "action"};
constexpr Command kTraceCommand{.name = "trace",
                                .help = "traces of training (train --trace): summarize",
                                .subcommands = kTraceActions,
                                .usage = "ACTION FILE... [OPTIONS]",
                                .kind = "action"};
constexpr Command kBenchCommand{.name = "bench",
                                .help = "benchmarks of kernels, collectives, training steps",
                                .subcommands = kBenchmarks,
                                .usage = "WHAT [OPTIONS]",
                                .kind = "benchmark"};
constexpr Command kLaunchCommand{.name = "launch",
                                 .help = "start and supervise the ranks of a run, like torchrun",
                                 .run = [](Arguments args, KeptAlive&) { return launch_main(args); },
                                 .describe = launch_command_line};
constexpr Command kHelpCommand = make_command<HelpOptions>("help", "help for a command, or its manual page");
constexpr Command kVersionCommand = make_command<VersionOptions>("version", "version and commit of this program");
constexpr Command kCompletionsCommand =
    make_command<CompletionsOptions>("completions", "completion script for bash, zsh or fish");

constexpr const Command* kCommands[] = {
    &kTrainCommand, &kPlanCommand,   &kLrFindCommand, &kEvalCommand, &kPredictCommand, &kRunsCommand,
    &kTopCommand,   &kReportCommand, &kTraceCommand,  &kCkptCommand, &kExportCommand,  &kBenchCommand,
    &kDataCommand,  &kLaunchCommand, &kDoctorCommand, &kHelpCommand, &kVersionCommand, &kCompletionsCommand};

constexpr Command kProgram{
    .name = "gradring", .help = kPurpose, .subcommands = kCommands, .usage = "COMMAND [OPTIONS]", .kind = "command"};

/// "gradring bench" as a command line without options, whose help lists its subcommands.
std::string group_help(const Command& group, const std::string& name) {
  std::string text = fmt::format("{}: {}\n\nUsage: {} {}\n\n", name, group.help, name, group.usage);
  for (const Command* each : group.subcommands) text += fmt::format("  {:<12} {}\n", each->name, each->help);
  text += fmt::format("\nRun {} {} --help for its options.\n", name, group.usage.substr(0, group.usage.find(' ')));
  if (&group == &kProgram) text += "gradrun is gradring launch. First try: gradring train\n";
  return text;
}

const Command& find_subcommand(const Command& group, std::string_view name, const std::string& group_name) {
  std::vector<std::string_view> names;
  for (const Command* each : group.subcommands) {
    if (each->name == name) return *each;
    names.push_back(each->name);
  }
  throw UsageError(
      fmt::format("there is no {} '{}'.{} Try {} --help", group.kind, name, did_you_mean(name, names), group_name));
}

/// The command line of a command, or of a group as its list of subcommands.
CommandLine line_of(const Command& command, const std::string& name) {
  if (command.describe != nullptr) return command.describe();
  CommandLine line{.command = name,
                   .purpose = std::string(command.help),
                   .usage = {fmt::format("{} {}", name, command.usage)},
                   .options = {}};
  line.notes = "Subcommands:\n";
  for (const Command* each : command.subcommands) line.notes += fmt::format("  {:<12} {}\n", each->name, each->help);
  return line;
}

void collect(const Command& command, const std::string& name, std::vector<CommandLine>& lines) {
  lines.push_back(line_of(command, name));
  for (const Command* each : command.subcommands) collect(*each, fmt::format("{} {}", name, each->name), lines);
}

void run(const HelpOptions& options, const Words& words) {
  const Command* command = &kProgram;
  std::string name = "gradring";
  for (const std::string& word : words) {
    command = &find_subcommand(*command, word, name);
    name += " " + word;
  }
  if (options.man)
    print_shown(manual_page(line_of(*command, name), GRADRING_VERSION));
  else if (command->subcommands.empty())
    print_shown(help_of(line_of(*command, name)));
  else
    print_shown(group_help(*command, name));
}

void run(const VersionOptions&) { print_text("gradring {} (commit {})\n", GRADRING_VERSION, kCommit); }

void run(const CompletionsOptions&, const Words& words) {
  std::vector<CommandLine> lines;
  collect(kProgram, "gradring", lines);
  print_shown(completions(only_word(words, "gradring completions SHELL"), lines));
}

/// Runs the subcommand that the first word names, or prints the help of the group: on stderr if there is no word at
/// all. `name`, of the group, becomes that of a command of the program.
int run_group(const Command& group, std::string& name, Arguments args, KeptAlive& kept) {
  if (args.empty()) {
    print_to_stderr(group_help(group, name));
    return kUsage;
  }
  const std::string& word = args.front();
  if (word == "--help" || word == "-h" || (word == "help" && &group != &kProgram)) {
    print_shown(group_help(group, name));
    return kOk;
  }
  const Command& command = find_subcommand(group, word == "--version" ? "version" : word, name);
  const auto rest = args.subspan(1);
  if (&group == &kProgram) name += fmt::format(" {}", command.name);
  return command.subcommands.empty() ? command.run(rest, kept) : run_group(command, name, rest, kept);
}

}  // namespace

int run_program(Arguments args, std::string_view program) {
  if (program == "gradrun") return launch_main(args);
  return run_command([&](std::string& name, KeptAlive& kept) { return run_group(kProgram, name, args, kept); });
}

}  // namespace gradring::train
