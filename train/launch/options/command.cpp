// SPDX-License-Identifier: Apache-2.0
#include "train/launch/options/command.h"

#include <fmt/format.h>
#include <signal.h>

#include "kernels/runtime/error.h"
#include "train/launch/exit_code.h"
#include "train/launch/signal_name.h"

namespace gradring::train {
namespace {

CommandKind kind_of(const LaunchDraft& draft) {
  if (draft.is_run_path) return CommandKind::python_script;  // as torchrun ranks them
  if (draft.is_module && draft.is_no_python)
    throw InvalidArgument("--module and --no-python contradict each other: a Python module is no program");
  if (draft.is_module) return CommandKind::python_module;
  return draft.is_no_python ? CommandKind::program : CommandKind::by_first_word;
}

void run_program(std::span<const std::string> words, LaunchOptions& options) {
  options.program = words.front();
  options.arguments.assign(words.begin() + 1, words.end());
}

/// As torchrun starts it: unbuffered, by $PYTHON_EXEC or the first python3 along PATH.
void run_python(std::span<const std::string> words, bool module, LaunchOptions& options, const LaunchWorld& world) {
  options.program = world.lookup("PYTHON_EXEC").value_or("python3");
  options.arguments = {"-u"};
  if (module) options.arguments.emplace_back("-m");
  options.arguments.insert(options.arguments.end(), words.begin(), words.end());
}

/// With the ends of our own program that another attempt would only repeat, or that somebody wanted.
void run_own(std::span<const std::string> words, LaunchOptions& options, const LaunchWorld& world) {
  options.program = world.own_program;
  options.arguments.assign(words.begin(), words.end());
  options.restarts.final_codes = {
      kUsage, kBadData, kDiverged, kPreempted, exit_code_after(SIGINT), exit_code_after(SIGQUIT)};
}

void read_by_first_word(std::span<const std::string> words, LaunchOptions& options, const LaunchWorld& world) {
  const std::string& first = words.front();
  if (first == "train" || first == "bench") return run_own(words, options, world);
  if (first.ends_with(".py")) return run_python(words, false, options, world);
  throw InvalidArgument(fmt::format(
      "'{0}' is neither `train` nor `bench` nor a Python script: to run another program, say `-- {0} ...`", first));
}

}  // namespace

void read_command(std::span<const std::string> words, LaunchDraft& draft, const LaunchWorld& world) {
  CommandKind kind = kind_of(draft);
  if (!words.empty() && words.front() == "--") {
    words = words.subspan(1);
    if (kind == CommandKind::by_first_word) kind = CommandKind::program;
  }
  if (words.empty())
    throw InvalidArgument(std::string("nothing to run: say `train ...`, or `-- program arguments...`") +
                          kSeeLaunchHelp);
  switch (kind) {
    case CommandKind::program: return run_program(words, draft.options);
    case CommandKind::python_module: return run_python(words, true, draft.options, world);
    case CommandKind::python_script: return run_python(words, false, draft.options, world);
    case CommandKind::by_first_word: return read_by_first_word(words, draft.options, world);
  }
}

}  // namespace gradring::train
