// SPDX-License-Identifier: Apache-2.0
#include "train/launch/options/launch_options.h"

#include <fmt/format.h>

#include "train/launch/options/command.h"
#include "train/launch/options/option.h"
#include "train/launch/options/settle.h"

namespace gradring::train {
namespace {

constexpr std::size_t kColumn = 30;
constexpr std::size_t kWidth = 118;

std::string signature(const Option& option) {
  const std::string letter = option.letter != 0 ? fmt::format("-{}, ", option.letter) : "";
  return fmt::format("  {}--{}{}{}", letter, option.name, option.value != nullptr ? " " : "",
                     option.value != nullptr ? option.value : "");
}

/// `text` beside `head`, broken between words.
std::string entry(const std::string& head, std::string text) {
  std::string result = fmt::format("{:<{}}", head, kColumn);
  if (head.size() >= kColumn) result += fmt::format("\n{:{}}", "", kColumn);
  while (text.size() > kWidth - kColumn) {
    const auto blank = text.rfind(' ', kWidth - kColumn);
    result += fmt::format("{}\n{:{}}", text.substr(0, blank), "", kColumn);
    text.erase(0, blank + 1);
  }
  return result + text + "\n";
}

}  // namespace

ParsedLaunch parse_launch(std::span<const std::string> args, const LaunchWorld& world) {
  LaunchDraft draft;
  bool help = false;
  read_variables(world.lookup, draft);
  const std::size_t read = read_options(args, draft, help);
  if (help) return {.options = {}, .help = true};
  read_command(args.subspan(read), draft, world);
  settle(draft, world);
  return {.options = std::move(draft.options)};
}

std::string launch_help() {
  std::string text =
      "gradring launch: start the ranks of a run on this machine, watch them, stop all when one fails, start them "
      "again\n\n"
      "  gradring launch [options] train ...             ranks of this program\n"
      "  gradring launch [options] bench allreduce ...   the same\n"
      "  gradring launch [options] script.py args...     ranks of a Python script\n"
      "  gradring launch [options] -- program args...    ranks of any program\n\n"
      "The options are torchrun's and some more; - and _ are the same, and PET_<NAME> in the environment stands in "
      "for\n"
      "each.\n";
  for (const OptionGroup& group : launch_option_groups()) {
    text += fmt::format("\n{}:\n", group.title);
    for (const Option& option : group.options) text += entry(signature(option), option.help);
  }
  text += "\n" + entry("  -h, --help", "this text");
  text +=
      "\nEach worker finds its place in RANK, WORLD_SIZE, LOCAL_RANK and the rest of torchrun's variables, and in\n"
      "GRADRING_STORE a private folder for the files by which ranks meet. OMP_NUM_THREADS is its share of the cores\n"
      "unless it is set. TORCHELASTIC_RESTART_COUNT counts the restarts; a worker that writes how many steps it has\n"
      "saved to the file GRADRING_PROGRESS_FILE is not given up while it comes further.\n\n"
      "Ctrl-C asks the workers to end, a second one kills them; SIGTERM and SIGHUP (a closed terminal) ask them, too.\n"
      "Exit codes: 0 if all workers returned 0; else the first failing worker's, 128 + n if signal n killed it;\n"
      "2 usage; 3 the machine cannot start workers; 126 the program cannot be executed, 127 is not there;\n"
      "130 Ctrl-C; 143 SIGTERM or SIGHUP; 161 a node, or the one that leads, is lost. GRADRING_TOKEN is what agents "
      "of\n"
      "several machines prove to know; without it, the run id.\n";
  return text;
}

}  // namespace gradring::train
