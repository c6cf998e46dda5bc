// SPDX-License-Identifier: Apache-2.0
#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/base/commit.h"
#include "kernels/base/file.h"
#include "kernels/base/in_quotes.h"
#include "kernels/base/nearest_name.h"
#include "kernels/runtime/cpu_level.h"
#include "nn/backend/cpu/onednn.h"
#include "train/app/commands/commands.h"
#include "train/bench/commands/commands.h"
#include "train/launch/launcher.h"
#include "train/launch/options/parse_launch.h"
#include "train/launch/workers/signals.h"
#include "train/options/exit_code.h"
#include "train/options/help.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

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
constexpr const Command* kDataCacheActions[] = {&kDataCacheLs, &kDataCacheRm};
constexpr const Command* kModelActions[] = {&kModelShow};
constexpr const Command* kTraceActions[] = {&kTraceSummary};
constexpr const Command* kBenchmarks[] = {&kBenchKernels, &kBenchStep,    &kBenchCompare, &kBenchAllReduce,
                                          &kBenchLaunch,  &kBenchRestart, &kBenchLoader,  &kBenchParallel,
                                          &kBenchScaling, &kBenchSeeds,   &kBenchDiff};

constexpr Command group_of(std::string_view name, std::string_view help, std::span<const Command* const> subcommands,
                           std::string_view usage, std::string_view kind = "action") {
  return {.name = name, .help = help, .subcommands = subcommands, .usage = usage, .kind = kind};
}

constexpr Command kCkptCommand =
    group_of("ckpt", "checkpoints: list, verify, compare, inspect, prune", kCkptActions, "ACTION PATH... [OPTIONS]");
constexpr Command kRunsCommand =
    group_of("runs", "runs: list, show, compare, remove, export as CSV", kRunsActions, "ACTION RUN... [OPTIONS]");
constexpr Command kDataCacheCommand =
    group_of("cache", "decoded images of image folders: list, remove", kDataCacheActions, "ACTION [KEY...]");
constexpr const Command* kDataActions[] = {&kDataFetch, &kDataVerify, &kDataInfo, &kDataCacheCommand};
constexpr Command kDataCommand =
    group_of("data", "datasets: fetch, verify, describe, cached images", kDataActions, "ACTION [NAME] [OPTIONS]");
constexpr Command kModelCommand =
    group_of("model", "models, built in or from files: show", kModelActions, "ACTION NAME|FILE.toml [OPTIONS]");
constexpr Command kTraceCommand =
    group_of("trace", "traces of training (train --trace): summarize", kTraceActions, "ACTION FILE... [OPTIONS]");
constexpr Command kBenchCommand =
    group_of("bench", "benchmarks of kernels, collectives, training steps", kBenchmarks, "WHAT [OPTIONS]", "benchmark");
constexpr Command kLaunchCommand{.name = "launch",
                                 .help = "start and supervise the ranks of a run, like torchrun",
                                 .run = [](Arguments args, KeptAlive&) { return launch_main(args); },
                                 .describe = launch_command_line};
constexpr Command kHelpCommand = make_command<HelpOptions>("help", "help for a command, or its manual page");
constexpr Command kVersionCommand = make_command<VersionOptions>("version", "version and commit of this program");
constexpr Command kCompletionsCommand =
    make_command<CompletionsOptions>("completions", "completion script for bash, zsh or fish");

constexpr const Command* kCommands[] = {&kTrainCommand,   &kPlanCommand,    &kLrFindCommand,     &kEvalCommand,
                                        &kPredictCommand, &kRunsCommand,    &kTopCommand,        &kReportCommand,
                                        &kTraceCommand,   &kCkptCommand,    &kExportCommand,     &kBenchCommand,
                                        &kDataCommand,    &kModelCommand,   &kLaunchCommand,     &kDoctorCommand,
                                        &kHelpCommand,    &kVersionCommand, &kCompletionsCommand};

constexpr Command kProgram = group_of("gradring", "data-parallel training on CPUs and GPUs, readable from end to end",
                                      kCommands, "COMMAND [OPTIONS]", "command");

/// A line for each of its subcommands.
std::string list_of(const Command& group) {
  std::string lines;
  for (const Command* each : group.subcommands) lines += fmt::format("  {:<12} {}\n", each->name, each->help);
  return lines;
}

std::string group_help(const Command& group, const std::string& name) {
  std::string text = fmt::format("{0}: {1}\n\nUsage: {0} {2}\n\n{3}", name, group.help, group.usage, list_of(group));
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
  if (&group == &kProgram || !command.subcommands.empty()) name += fmt::format(" {}", command.name);
  return command.subcommands.empty() ? command.run(rest, kept) : run_group(command, name, rest, kept);
}

/// Runs `gradring ARGS`, or `gradring launch ARGS` if the program is called gradrun.
///
/// Returns   the exit code.
int run_program(Arguments args, std::string_view program) {
  if (program == "gradrun") return launch_main(args);
  return run_command([&](std::string& name, KeptAlive& kept) { return run_group(kProgram, name, args, kept); });
}

/// Opens /dev/null as each of stdin, stdout and stderr that is closed. Otherwise the next file or shared memory that is
/// opened would get its number, and receive what is printed.
void reserve_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) == -1)
      ::open("/dev/null", O_RDONLY);  // takes the lowest free number; writes fail with EBADF
}

/// Lets writes beyond the file size limit (ulimit -f) fail with EFBIG instead of ending the process. A handler,
/// because exec resets it: programs that the launcher starts would inherit SIG_IGN.
void survive_file_size_limit() {
  if (!is_ignored(SIGXFSZ)) ::signal(SIGXFSZ, [](int) {});
}

/// Lets glibc load its unwinder while there is memory. It aborts if it cannot do so when a thread of OpenMP exits.
void load_unwinder() {
  void* frame = nullptr;
  ::backtrace(&frame, 1);
}

/// The launcher computes nothing, and starts sooner as it is.
bool is_launcher(Arguments args, std::string_view program) {
  return program == "gradrun" || (!args.empty() && args.front() == "launch");
}

constexpr const char* kWaitPolicy = nn::kOpenmpWaitVariables[0];
/// Set between the two executions.
constexpr const char* kWaitPolicySetByUs = "GRADRING_SET_OMP_WAIT_POLICY";

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

void remove_wait_policy() {
  ::unsetenv(kWaitPolicy);
  ::unsetenv(kWaitPolicySetByUs);
}

/// Lets OpenMP's threads, with which oneDNN computes, sleep while they wait for each other. By default those of libgomp
/// spin for 3 ms, and take the processor from the thread that they wait for where there are more threads than processors:
/// the loader's is one more. An environment that says how they wait is obeyed.
///
/// libgomp reads its variables when it is loaded, before main(). So this executes the program once more, with
/// OMP_WAIT_POLICY=passive, and removes that variable there: programs that this one starts do not inherit it. If the
/// program cannot be executed, it continues, with threads that spin.
void wait_passively_in_openmp(char** argv) {
  if (is_set(kWaitPolicySetByUs)) {
    nn::read_openmp_environment();
    return remove_wait_policy();
  }
  const bool is_loaders_argument = ::getauxval(AT_BASE) == 0;  // "ld.so gradring": /proc/self/exe is ld.so
  if (!nn::has_onednn() || is_loaders_argument || std::ranges::any_of(nn::kOpenmpWaitVariables, is_set)) return;
  ::setenv(kWaitPolicy, "passive", 1);
  ::setenv(kWaitPolicySetByUs, "1", 1);
  ::execv("/proc/self/exe", argv);
  remove_wait_policy();
}

}  // namespace
}  // namespace gradring::train

int main(int argc, char** argv) {
  using namespace gradring::train;
  reserve_standard_streams();
  survive_file_size_limit();
  load_unwinder();
  try {
    const std::vector<std::string> args(argv + 1, argv + argc);
    const std::string program = std::filesystem::path(argv[0]).filename().string();
    if (!is_launcher(args, program)) wait_passively_in_openmp(argv);
    gradring::kernels::cpu_level();  // fails before any code of a level runs
    return finish_standard_output(run_program(args, program));
  } catch (const std::exception& error) {
    if (is_output_failure(error)) return finish_standard_output(gradring::kOk, &error);
    gradring::print_to_stderr(fmt::format("gradring: {}\n", message_of(error)));
    return exit_code_of(error);
  }
}
