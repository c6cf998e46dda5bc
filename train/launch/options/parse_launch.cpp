// SPDX-License-Identifier: Apache-2.0
#include "train/launch/options/parse_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <tuple>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/nearest_name.h"
#include "train/launch/logs/log_spec.h"
#include "train/launch/options/launch_draft.h"
#include "train/launch/workers/signals.h"
#include "train/launch/workers/worker_environment.h"
#include "train/options/exit_code.h"
#include "train/options/help.h"
#include "train/options/parse_value.h"
#include "train/options/path_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr int kMost = 1'000'000'000;

using Options = std::vector<Option>;
using Text = std::string_view;

/// Accepted for torchrun's sake: must be one of `words`, and has no effect.
template <std::size_t kCount>
Option accepted_option(Text name, const char* placeholder, const char* help, const std::string_view (&words)[kCount]) {
  Option option = bare_option(name, placeholder, help);
  option.read = [name = option.name, &words](Text text) { parse_word(name, text, words); };
  return option;
}

/// A whole number from `least` to `most`.
template <class Value>
Option number_option(Text name, const char* placeholder, const char* help, IntegerRange range, Value& value) {
  const auto parse = [range](Text option, Text text) { return parse_integer(option, text, range); };
  return value_option(name, placeholder, help, parse, value);
}

NodeRange parse_nodes(Text name, Text text) {
  const auto colon = text.find(':');
  const auto number = [&](Text part) {
    return static_cast<int>(parse_integer(name, part, {.least = 1, .most = kMostNodes}));
  };
  const int least = number(text.substr(0, colon));
  const NodeRange nodes{.least = least, .most = colon == text.npos ? least : number(text.substr(colon + 1))};
  if (nodes.least > nodes.most) throw bad_value(name, text, "MIN is above MAX");
  return nodes;
}

std::vector<std::string> parse_devices(Text name, Text text) {
  const std::vector<std::string> devices = comma_separated(std::string(text));
  if (std::ranges::count(devices, "") > 0) throw bad_value(name, text, "must be a list of GPUs such as 0,1,5");
  return devices;
}

std::pair<std::chrono::milliseconds, std::chrono::milliseconds> parse_backoff(Text name, Text text) {
  const auto dots = text.find("..");
  const auto first = parse_pause(name, text.substr(0, dots));
  const auto longest = dots == text.npos ? first : parse_pause(name, text.substr(dots + 2));
  if (first > longest) throw bad_value(name, text, "FIRST is longer than LONGEST");
  return {first, longest};
}

std::vector<int> parse_signals(Text option, Text text) {
  std::vector<int> numbers;
  for (std::string name : comma_separated(std::string(text))) {
    std::erase(name, ' ');  // as torchrun does
    numbers.push_back(stopping_signal(name));
    if (numbers.back() == 0)
      throw bad_value(option, text,
                      fmt::format("'{}' is not one of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2", name));
  }
  return numbers;
}

std::vector<int> parse_ranks(Text name, Text text) {
  std::vector<int> ranks;
  for (const std::string& rank : comma_separated(std::string(text)))
    ranks.push_back(static_cast<int>(parse_integer(name, rank, {.least = 0, .most = 65535})));
  return ranks;
}

StreamMap parse_streams(Text name, Text text) try {
  return StreamMap::from_text(std::string(text));
} catch (const InvalidArgument& error) {
  throw bad_value(name, text, error.what());
}

std::string parse_folder(Text name, Text text) {
  if (text.empty()) throw bad_value(name, text, "must be the path of a folder");
  return std::string(text);
}

Rendezvous parse_rendezvous(Text name, Text text) {
  if (text != "static" && text != "c10d") throw bad_value(name, text, "must be static or c10d; etcd is not supported");
  return text == "static" ? Rendezvous::by_address : Rendezvous::dynamic;
}

/// In torchrun's words.
bool read_is_host(Text option, std::string text) {
  constexpr std::string_view kYes[] = {"1", "true", "t", "yes", "y"}, kNo[] = {"0", "false", "f", "no", "n"};
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::tolower(letter); });
  const bool yes = std::ranges::find(kYes, text) != std::end(kYes);
  if (!yes && std::ranges::find(kNo, text) == std::end(kNo)) throw bad_value(option, text, "is_host must be 1 or 0");
  return yes;
}

void read_rdzv_conf(LaunchOptions& options, Text option, Text text) {
  constexpr std::string_view kKnown[] = {"timeout",
                                         "join_timeout",
                                         "last_call_timeout",
                                         "close_timeout",
                                         "read_timeout",
                                         "heartbeat_timeout",
                                         "keep_alive_interval",
                                         "keep_alive_max_attempt",
                                         "is_host",
                                         "store_type",
                                         "rank"};
  for (const std::string& entry : comma_separated(std::string(text))) {
    const auto sign = entry.find('=');
    const std::string key = entry.substr(0, sign);
    if (sign == std::string::npos || key.empty()) throw bad_value(option, text, "must be KEY=VALUE,KEY=VALUE");
    if (std::ranges::find(kKnown, key) == std::end(kKnown))
      throw bad_value(option, text, fmt::format("unknown setting '{}'.{}", key, did_you_mean(key, kKnown)));
    const std::string value = entry.substr(sign + 1);
    if (key == "timeout" || key == "join_timeout") options.join_timeout = parse_pause(option, value);
    if (key == "last_call_timeout") options.last_call = parse_pause(option, value);
    if (key == "is_host") options.is_host = read_is_host(option, value);
  }
}

Options worker_options(LaunchDraft& draft) {
  static constexpr std::string_view kMethods[] = {"spawn", "fork", "forkserver"};
  LaunchOptions& options = draft.options;
  Option numa = bare_option("numa-binding", "NAME", "not supported; see `train --pin`");
  numa.read = [](Text text) {
    throw bad_value("numa-binding", text,
                    "NUMA binding is not supported: leave it out; `train --pin` binds ranks to cores");
  };
  return {text_option("nproc-per-node", "N",
                      "workers on this node; cpu: one per usable processor; gpu: one per GPU; auto: gpu if there is "
                      "one, else cpu (default 1, or one per --devices)",
                      draft.nproc),
          value_option("devices", "LIST", "GPUs to use, as in CUDA_VISIBLE_DEVICES (default all)", parse_devices,
                       options.devices),
          switch_option("virtual-local-rank", "LOCAL_RANK 0 and one visible GPU for every worker",
                        options.virtual_local_rank),
          value_option("nnodes", "N|MIN:MAX",
                       "nodes of the run; MIN:MAX: elastic, the run continues while nodes join and leave (default 1)",
                       parse_nodes, draft.nnodes),
          number_option("node-rank", "N", "rank of this node, from 0 (default 0)", {.least = 0, .most = kMostNodes - 1},
                        options.node_rank),
          text_option("role", "NAME", "ROLE_NAME of the workers (default default)", options.role),
          switch_option("no-python", "the command is a program, not a Python script", draft.is_no_python),
          switch_option("module,m", "the command is a Python module", draft.is_module),
          switch_option("run-path", "the command is a Python script, whatever its extension", draft.is_run_path),
          accepted_option("start-method", "spawn|fork|forkserver",
                          "accepted for torchrun, without effect (default spawn)", kMethods),
          numa};
}

Options restart_options(LaunchDraft& draft) {
  static constexpr std::string_view kHandlers[] = {"null"};
  LaunchOptions& options = draft.options;
  Option backoff = bare_option(
      "backoff", "FIRST..LONGEST",
      "wait before a restart, doubled after each attempt without progress; none before the first restart (default "
      "1s..30s)");
  backoff.read = [&restarts = options.restarts](Text text) {
    std::tie(restarts.first_backoff, restarts.longest_backoff) = parse_backoff("backoff", text);
  };
  Option interval = bare_option("monitor-interval", "SECONDS", "accepted for torchrun, without effect (default 0.1)");
  interval.read = [](Text text) { parse_pause("monitor-interval", text); };
  return {
      number_option("max-restarts", "N", "restarts of all workers after a failure (default 0)", {.most = kMost},
                    options.restarts.most),
      backoff,
      number_option("min-progress-steps", "N",
                    "steps that at least one of 3 attempts in a row must add, or the run is given up; 0: no limit "
                    "(default 1, for `train` and workers that report their steps)",
                    {.most = kMost}, options.restarts.min_progress_steps),
      value_option("kill-grace", "TIME", "time between SIGTERM and SIGKILL: 30, 30s, 500ms, 2m (default 30s)",
                   parse_pause, options.kill_grace),
      value_option("shutdown-timeout", "SECONDS", "torchrun's name of --kill-grace", parse_pause, options.kill_grace),
      value_option("signals-to-handle", "LIST",
                   "signals that end the run; SIGUSR1 and SIGUSR2 are allowed (default "
                   "SIGTERM,SIGINT,SIGHUP,SIGQUIT)",
                   parse_signals, options.handled_signals),
      interval,
      accepted_option("event-log-handler", "NAME", "accepted for torchrun: null (default null)", kHandlers)};
}

Options output_options(LaunchDraft& draft) {
  static constexpr std::string_view kSpecs[] = {"default"};
  LogSpec& logs = draft.options.logs;
  return {value_option("log-dir", "DIR",
                       "folder for stdout.log, stderr.log and error.json, in <run id>/attempt_<n>/<local rank>",
                       parse_folder, logs.folder),
          value_option("redirects,r", "MAP",
                       "streams to write to those files: 0 none, 1 stdout, 2 stderr, 3 both; by local rank: 0:3,12:1 "
                       "(default 0)",
                       parse_streams, logs.redirects),
          value_option("tee,t", "MAP",
                       "streams to write to those files and, with a prefix per line, to the terminal (default 0)",
                       parse_streams, logs.tee),
          value_option("local-ranks-filter", "LIST", "local ranks whose output is shown (default all)", parse_ranks,
                       logs.shown),
          text_option("log-prefix", "TEXT",
                      "prefix of --tee with ${role_name}, ${rank}, ${local_rank}, ${node_rank}, ${time} (default "
                      "[${role_name}${local_rank}]:, or TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE)",
                      logs.prefix),
          accepted_option("logs-specs", "NAME", "accepted for torchrun: default (default default)", kSpecs)};
}

Options rendezvous_options(LaunchDraft& draft) {
  Option conf = bare_option(
      "rdzv-conf", "K=V,K=V",
      "timeouts in seconds: timeout or join_timeout until the minimum of nodes has joined (default 900), "
      "last_call_timeout for more (default 30); is_host=1 or 0: with c10d, whether this node may lead (default by its "
      "addresses); other keys have no effect");
  conf.read = [&draft](Text text) { read_rdzv_conf(draft.options, "rdzv-conf", text); };
  return {
      switch_option("standalone", "single-node run with a random run id and a free MASTER_PORT", draft.standalone),
      text_option("master-addr", "HOST",
                  "MASTER_ADDR of the workers, a name or address by which this node reaches node 0 (default 127.0.0.1)",
                  draft.master_addr),
      number_option("master-port", "PORT",
                    "MASTER_PORT of the workers (default MASTER_PORT of the environment, or a free one); with several "
                    "nodes the port where node 0 listens (default 29500), and the workers get a free one",
                    {.least = 1, .most = kHighestPort}, draft.master_port),
      text_option("listen", "HOST", "with several nodes: address where the leader listens (default all of its host)",
                  draft.listen),
      text_option("rdzv-id", "ID", "TORCHELASTIC_RUN_ID of the workers (default none)", draft.run_id),
      value_option("rdzv-backend", "static|c10d",
                   "rendezvous; static: node 0 listens at --master-port; c10d: the first node on the host of "
                   "--rdzv-endpoint that can listen there leads, and node ranks follow the order of joining (default "
                   "static)",
                   parse_rendezvous, draft.options.rendezvous),
      text_option("rdzv-endpoint", "HOST[:PORT]",
                  "c10d: address of the leader, port 29400 by default; static: the same as --master-addr and "
                  "--master-port; not needed on a single node",
                  draft.rdzv_endpoint),
      conf,
      text_option("local-addr", "HOST", "address of this node for the others (default detected)", draft.local_addr)};
}

constexpr const char* kNotes =
    "Options are torchrun's and some more. PET_<NAME> in the environment stands in for each.\n\n"
    "Each worker gets RANK, WORLD_SIZE, LOCAL_RANK and the rest of torchrun's variables; OMP_NUM_THREADS, its share of "
    "the usable processors, unless it is set; and GRADRING_STORE, a private folder for the rendezvous of the ranks. "
    "TORCHELASTIC_RESTART_COUNT counts the restarts. A worker that writes its number of saved steps to the file "
    "GRADRING_PROGRESS_FILE is restarted as long as it makes progress.\n\n"
    "Ctrl-C, SIGTERM, SIGHUP (a closed terminal) and SIGQUIT ask the workers to end; a second Ctrl-C kills them. "
    "SIGQUIT reaches the workers as SIGTERM.\n\n"
    "With several nodes, set the same secret on each of them: GRADRING_TOKEN, or GRADRING_TOKEN_FILE, the path of a "
    "file that holds it.\n\n";

CommandLine command_line(LaunchDraft& draft) {
  CommandLine line{
      .command = "gradring launch",
      .purpose = "start and supervision of the ranks of a run; if one fails, all stop and start again",
      .usage = {"gradring launch [OPTIONS] train ...", "gradring launch [OPTIONS] bench allreduce ...",
                "gradring launch [OPTIONS] script.py ARGS...", "gradring launch [OPTIONS] -- program ARGS..."},
      .options = {},
      .ends_at_word = true,
      .notes = kNotes + exit_codes_text({{0, "every worker returned 0"},
                                         {-1, "that of the worker that failed first; 128 + n if signal n killed it"},
                                         {2},
                                         {3, "this machine cannot start workers, or a log file could not be written"},
                                         {126},
                                         {127},
                                         {130},
                                         {131, "SIGQUIT"},
                                         {143, "SIGTERM or SIGHUP"},
                                         {161, "a node, or the leading one, was lost"}})};
  const auto add = [&](const char* group, Options options) {
    for (Option& each : options) each.group = group;
    std::ranges::move(options, std::back_inserter(line.options));
  };
  add("Workers", worker_options(draft));
  add("Failures and restarts", restart_options(draft));
  add("Output", output_options(draft));
  add("Rendezvous", rendezvous_options(draft));
  return line;
}

/// Reads PET_<NAME>, or else the variable that torchrun has besides.
void read_variable(const Option& option, const VariableLookup& lookup) {
  std::string variable = "PET_" + option.name;
  for (char& letter : variable)
    letter = letter == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  if (!lookup(variable) && option.name == "shutdown-timeout") variable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
  if (!lookup(variable) && option.name == "log-prefix") variable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
  const auto text = lookup(variable);
  if (!text) return;
  try {
    if (!option.is_flag()) return option.read(value_text(variable, option.value, *text));
    if (parse_flag(option.name, *text)) option.read("true");
  } catch (const InvalidArgument& error) {
    throw UsageError(fmt::format("{}: {}", variable, error.what()));
  }
}

}  // namespace

ParsedLaunch parse_launch(std::span<const std::string> args, const LaunchWorld& world) {
  LaunchDraft draft;
  const CommandLine line = command_line(draft);
  for (const Option& each : line.options) read_variable(each, world.lookup);
  const CommandWords parsed = read_command_line(line, args);
  if (parsed.help) return {.options = {}, .help = true};
  read_command(parsed.words, draft, world);
  resolve_launch(draft, world);
  return {.options = std::move(draft.options)};
}

CommandLine launch_command_line() {
  LaunchDraft unused;
  return command_line(unused);
}

std::string launch_help() { return help_of(launch_command_line()); }

}  // namespace gradring::train
