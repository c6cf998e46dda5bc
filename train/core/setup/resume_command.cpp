// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/resume_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "kernels/runtime/cpu_level.h"
#include "nn/backend/cpu/onednn.h"
#include "train/core/config/option_sources.h"
#include "train/options/shell_words.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words words_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/cmdline", std::ios::binary);
  Words words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

bool ends_with(const Words& words, const Words& tail) {
  return words.size() > tail.size() && std::equal(tail.rbegin(), tail.rend(), words.rbegin());
}

/// "train" and what follows it in the launcher's arguments.
std::optional<Words> tail_in(const Words& parent, const Words& own) {
  Words tail(own.begin() + 1, own.end());
  if (ends_with(parent, tail)) return tail;
  const Words spawned = {"--nprocs", "1"};  // which --nprocs appends for its ranks
  if (!ends_with(tail, spawned)) return std::nullopt;
  tail.resize(tail.size() - spawned.size());
  return ends_with(parent, tail) ? std::optional(tail) : std::nullopt;
}

/// Whether the word is --name, --name=value, or either with _ in the place of -.
bool is_option(std::string word, std::string_view name) {
  word = word.substr(0, word.find('='));
  std::ranges::replace(word, '_', '-');
  return word == name;
}

/// The arguments after "train", with --run-dir and the `changes` replaced, and without --resume.
Words restarting(const Words& tail, const fs::path& run_dir, const std::vector<OptionWord>& changes) {
  const auto is_replaced = [&](const std::string& word) {
    return is_option(word, "--run-dir") || is_option(word, "--resume") ||
           std::ranges::any_of(changes, [&](const OptionWord& change) { return is_option(word, change.name); });
  };
  Words words;
  for (std::size_t i = 0; i < tail.size(); ++i) {
    if (!is_replaced(tail[i]))
      words.push_back(tail[i]);
    else if (tail[i].find('=') == std::string::npos)
      ++i;  // its value
  }
  for (const OptionWord& change : changes)
    if (change.value) words.insert(words.end(), {change.name, *change.value});
  const std::string path = run_dir.string();
  if (path.starts_with('-'))  // a value, not an option
    words.push_back("--run-dir=" + path);
  else
    words.insert(words.end(), {"--run-dir", path});
  return words;
}

/// The same, with --resume auto.
Words resuming(const Words& tail, const fs::path& run_dir, const std::vector<OptionWord>& changes) {
  Words words = restarting(tail, run_dir, changes);
  words.insert(words.end(), {"--resume", "auto"});
  return words;
}

/// NAME=value for each variable that sets an option, of the launcher too, or the code that a CPU runs.
std::string assignments(const StartedBy& started_by) {
  std::string text;
  const GivenOptions options = read_variables(started_by.environment);
  for (const auto& [name, value] : started_by.environment) {
    const bool sets_option =
        std::ranges::any_of(options, [&](const auto& option) { return option.second.source == name; });
    const bool sets_code = name == kernels::kCpuLevelVariable || std::ranges::count(nn::kOneDnnLimits, name) > 0;
    if (sets_option || sets_code || (started_by.launched && name.starts_with("PET_")))
      text += name + "=" + shell_quoted(value) + " ";
  }
  return text;
}

/// The command that started the run, launcher included, with what follows "train" edited, and the variables that set
/// options.
std::string command_with(const StartedBy& started_by, const std::function<Words(const Words&)>& edited) {
  const auto& [own, parent, launched, world_size, nodes, environment] = started_by;
  const std::optional<Words> tail = launched ? tail_in(parent, own) : std::nullopt;
  Words command = tail ? Words(parent.begin(), parent.end() - std::ssize(*tail)) : Words{own.at(0)};
  const Words train = edited(tail ? *tail : Words(own.begin() + 1, own.end()));
  command.insert(command.end(), train.begin(), train.end());
  std::string text = assignments(started_by) + shell_command(command);
  if (!tail && world_size > 1)
    text += fmt::format("  # as each of the {} ranks", world_size);
  else if (nodes == 2)
    text += "  # and the launcher on the other node";
  else if (nodes > 2)
    text += fmt::format("  # and the launchers on the other {} nodes", nodes - 1);
  return text;
}

}  // namespace

Words own_command() { return words_of("self"); }

StartedBy started_by(const WorkerEnvironment& environment) {
  Words own = own_command();
  if (own.empty()) own = {"gradring", "train"};  // without /proc, the user adds the options
  return {.own = std::move(own),
          .parent = words_of(std::to_string(::getppid())),
          .launched = !environment.launcher.empty(),
          .world_size = environment.world_size,
          .nodes = environment.group_world_size,
          .environment = system_variables()};
}

std::string start_command(const StartedBy& started_by) {
  return command_with(started_by, [](const Words& train) { return train; });
}

std::string resume_command(const StartedBy& started_by, const fs::path& run_dir,
                           const std::vector<OptionWord>& changes) {
  return command_with(started_by, [&](const Words& train) { return resuming(train, run_dir, changes); });
}

std::string restart_command(const StartedBy& started_by, const fs::path& run_dir,
                            const std::vector<OptionWord>& changes) {
  return command_with(started_by, [&](const Words& train) { return restarting(train, run_dir, changes); });
}

}  // namespace gradring::train
