// SPDX-License-Identifier: Apache-2.0
#include "train/launch/launch_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "kernels/runtime/error.h"
#include "kernels/runtime/nearest_name.h"

namespace gradring::train {
namespace {

constexpr const char* kSeeHelp = "; see gradring launch --help";

/// What has been read so far.
struct Draft {
  LaunchOptions options;
  bool standalone = false;
  bool has_run_id = false, has_address = false, has_port = false;
};

/// One option. `read` throws InvalidArgument with what is wrong about the value; the caller says where it stood.
struct Option {
  const char* name;   ///< with dashes
  const char* value;  ///< what --help calls it; nullptr if the option takes none
  const char* help;
  void (*read)(Draft&, const std::string& value, const LaunchWorld&);
};

int whole_number(const std::string& text, int lowest, int highest) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < lowest || number > highest)
    throw InvalidArgument(fmt::format("must be a whole number from {} to {}", lowest, highest));
  return number;
}

void read_nproc(Draft& draft, const std::string& value, const LaunchWorld& world) {
  constexpr int kMost = 4096;
  if (value == "gpu" || value == "xpu") throw InvalidArgument("counting GPUs is not built yet: give the number");
  const bool by_cores = value == "auto" || value == "cpu";
  draft.options.nproc_per_node = by_cores ? world.cores : whole_number(value, 1, kMost);
}

void read_nnodes(Draft&, const std::string& value, const LaunchWorld&) {
  if (value != "1" && value != "1:1") throw InvalidArgument("several machines are not built yet: say 1");
}

void read_node_rank(Draft&, const std::string& value, const LaunchWorld&) {
  if (value != "0") throw InvalidArgument("several machines are not built yet: say 0");
}

void read_max_restarts(Draft& draft, const std::string& value, const LaunchWorld&) {
  if (value != "0") throw InvalidArgument("restarting workers is not built yet: say 0");
  draft.options.max_restarts = 0;
}

void read_standalone(Draft& draft, const std::string& value, const LaunchWorld&) {
  draft.standalone = whole_number(value, 0, 1) == 1;
}

void read_rdzv_id(Draft& draft, const std::string& value, const LaunchWorld&) {
  draft.options.run_id = value;
  draft.has_run_id = true;
}

void read_master_addr(Draft& draft, const std::string& value, const LaunchWorld&) {
  draft.options.master_addr = value;
  draft.has_address = true;
}

void read_master_port(Draft& draft, const std::string& value, const LaunchWorld&) {
  draft.options.master_port = whole_number(value, 1, 65535);
  draft.has_port = true;
}

void read_role(Draft& draft, const std::string& value, const LaunchWorld&) { draft.options.role = value; }

/// "2m", "30s", "500ms"; a number alone is seconds, as torchrun's are.
void read_kill_grace(Draft& draft, const std::string& value, const LaunchWorld&) {
  struct Unit {
    std::string_view suffix;
    double milliseconds;
  };
  constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"", 1000}};
  constexpr double kLongest = 24 * 3600 * 1000;
  const Unit& unit = *std::ranges::find_if(kUnits, [&](const Unit& it) { return value.ends_with(it.suffix); });
  double number = 0;
  const char* end = value.data() + value.size() - unit.suffix.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  const double milliseconds = number * unit.milliseconds;
  if (error != std::errc() || stop != end || !(milliseconds >= 0 && milliseconds <= kLongest))
    throw InvalidArgument("must be a time such as 30s, 500ms or 2m, at most a day");
  draft.options.kill_grace = std::chrono::milliseconds(std::llround(milliseconds));
}

constexpr Option kOptions[] = {
    {"nproc-per-node", "N", "workers to start; auto or cpu: one per core (default 1)", read_nproc},
    {"nnodes", "N", "machines of the run: 1, or 1:1 (default 1)", read_nnodes},
    {"node-rank", "N", "this machine's number among them: 0 (default 0)", read_node_rank},
    {"standalone", nullptr, "a run by itself: a random run id, a free MASTER_PORT", read_standalone},
    {"rdzv-id", "ID", "the workers' TORCHELASTIC_RUN_ID (default none)", read_rdzv_id},
    {"master-addr", "HOST", "the workers' MASTER_ADDR (default 127.0.0.1)", read_master_addr},
    {"master-port", "PORT", "the workers' MASTER_PORT (default 29500); gradring itself does not use it",
     read_master_port},
    {"role", "NAME", "the workers' ROLE_NAME (default default)", read_role},
    {"max-restarts", "N", "how often to start failed workers again: 0 (default 0)", read_max_restarts},
    {"kill-grace", "TIME", "from asking workers to end to killing them: 30, 30s, 500ms, 2m (default 30s)",
     read_kill_grace},
};

const Option* find_option(std::string name) {
  std::ranges::replace(name, '_', '-');
  const auto it = std::ranges::find(kOptions, name, [](const Option& option) { return std::string(option.name); });
  return it == std::end(kOptions) ? nullptr : &*it;
}

std::string variable_of(const Option& option) {
  std::string name = std::string("PET_") + option.name;
  for (char& letter : name) letter = letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
  return name;
}

void read(const Option& option, Draft& draft, const std::string& shown, const std::string& value,
          const LaunchWorld& world) try {
  option.read(draft, value, world);
} catch (const InvalidArgument& error) {
  throw InvalidArgument(fmt::format("{}={}: {}", shown, value, error.what()));
}

[[noreturn]] void reject(const std::string& shown) {
  std::vector<std::string_view> known = {"help"};
  for (const Option& option : kOptions) known.push_back(option.name);
  std::string spelled = shown.substr(std::min(shown.find_first_not_of('-'), shown.size()));
  std::ranges::replace(spelled, '_', '-');
  const std::string_view meant = nearest_name(spelled, known);
  throw InvalidArgument(
      fmt::format("unknown option {}{}{}{}", shown, meant.empty() ? "" : "; the nearest is --", meant, kSeeHelp));
}

/// Reads the option at args[i] and returns the index after it.
std::size_t read_option(std::span<const std::string> args, std::size_t i, Draft& draft, const LaunchWorld& world) {
  const std::string shown = args[i].substr(0, args[i].find('='));
  const bool attached = shown.size() < args[i].size();
  const Option* option = shown.starts_with("--") ? find_option(shown.substr(2)) : nullptr;
  if (option == nullptr) reject(shown);

  if (option->value == nullptr) {
    if (attached) throw InvalidArgument(shown + " takes no value");
    read(*option, draft, shown, "1", world);
    return i + 1;
  }
  if (attached) {
    read(*option, draft, shown, args[i].substr(shown.size() + 1), world);
    return i + 1;
  }
  if (i + 1 == args.size() || args[i + 1].starts_with("--"))
    throw InvalidArgument(fmt::format("{} needs a value: {} {}", shown, shown, option->value));
  read(*option, draft, shown, args[i + 1], world);
  return i + 2;
}

void read_variables(Draft& draft, const LaunchWorld& world) {
  for (const Option& option : kOptions)
    if (const auto value = world.lookup(variable_of(option))) read(option, draft, variable_of(option), *value, world);
}

void read_command(std::span<const std::string> words, Draft& draft, const LaunchWorld& world) {
  LaunchOptions& options = draft.options;
  if (!words.empty() && (words.front() == "train" || words.front() == "bench")) {
    options.program = world.own_program;
  } else if (words.size() >= 2 && words.front() == "--") {
    options.program = words[1];
    words = words.subspan(2);
  } else if (words.empty() || words.front() == "--") {
    throw InvalidArgument(std::string("nothing to run: say `train ...`, or `-- program arguments...`") + kSeeHelp);
  } else {
    throw InvalidArgument(
        fmt::format("'{0}' is neither `train` nor `bench`: to run another program, say `-- {0} ...`", words.front()));
  }
  options.arguments.assign(words.begin(), words.end());
}

void fill_in(Draft& draft, const LaunchWorld& world) {
  if (!draft.standalone) return;
  if (!draft.has_run_id) draft.options.run_id = world.random_run_id();
  if (!draft.has_address) draft.options.master_addr = "localhost";
  if (!draft.has_port) draft.options.master_port = world.free_tcp_port();
}

}  // namespace

ParsedLaunch parse_launch(std::span<const std::string> args, const LaunchWorld& world) {
  Draft draft;
  read_variables(draft, world);
  std::size_t i = 0;
  while (i < args.size() && args[i].starts_with("-") && args[i] != "--") {
    if (args[i] == "--help" || args[i] == "-h") return {.options = {}, .help = true};
    i = read_option(args, i, draft, world);
  }
  read_command(args.subspan(i), draft, world);
  fill_in(draft, world);
  return {.options = std::move(draft.options)};
}

std::string launch_help() {
  std::string text =
      "gradring launch: start the ranks of a run on this machine, watch them, stop all when one fails\n\n"
      "  gradring launch [options] train ...             ranks of this program\n"
      "  gradring launch [options] bench allreduce ...   the same\n"
      "  gradring launch [options] -- program args...    ranks of any program\n\n"
      "Options, as torchrun has them; - and _ are the same, and PET_<NAME> in the environment stands in for each:\n";
  for (const Option& option : kOptions)
    text += fmt::format("  {:<24} {}\n",
                        fmt::format("--{}{}{}", option.name, option.value != nullptr ? " " : "",
                                    option.value != nullptr ? option.value : ""),
                        option.help);
  text += fmt::format("  {:<24} {}\n\n", "-h, --help", "this text");
  text +=
      "Each worker finds its place in RANK, WORLD_SIZE, LOCAL_RANK and the rest of torchrun's variables, and in\n"
      "GRADRING_STORE a private folder for the files by which ranks meet. OMP_NUM_THREADS is its share of the cores\n"
      "unless it is set.\n\n"
      "Ctrl-C asks the workers to end, a second one kills them; SIGTERM asks them, too.\n"
      "Exit codes: 0 if all workers returned 0; else the first failing worker's, 128 + n if signal n killed it;\n"
      "2 usage; 3 the machine cannot start workers; 126 the program cannot be executed, 127 is not there;\n"
      "130 Ctrl-C; 143 SIGTERM.\n";
  return text;
}

}  // namespace gradring::train
