// SPDX-License-Identifier: Apache-2.0
#include "train/launch/options/parse_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "kernels/base/error.h"
#include "kernels/base/nearest_name.h"
#include "train/launch/logs/log_spec.h"
#include "train/launch/options/launch_draft.h"
#include "train/launch/workers/signals.h"
#include "train/launch/workers/worker_environment.h"
#include "train/options/help.h"
#include "train/options/path_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr int kMost = 1'000'000'000;

using Options = std::vector<Option>;
using Reader = std::function<void(const std::string&)>;

Option option(const char* name, const char* value, const char* help, Reader read, char letter = 0) {
  return {.name = name, .letter = letter, .value = value, .help = help, .read = [read](std::string_view text) {
            read(std::string(text));
          }};
}

/// "true" on the command line; torchrun reads a flag's variable as 0 or 1.
Option flag(const char* name, const char* help, bool& on, char letter = 0) {
  return option(
      name, "", help, [&on](const std::string& text) { on = text == "true" || text == "1"; }, letter);
}

Reader into(std::string& field) {
  return [&field](const std::string& text) { field = text; };
}
Reader into(std::optional<std::string>& field) {
  return [&field](const std::string& text) { field = text; };
}

/// An option that is accepted for torchrun's sake and takes one of `words`.
Reader only(std::vector<std::string> words, const char* complaint) {
  return [words, complaint](const std::string& text) {
    if (std::ranges::find(words, text) == words.end()) throw InvalidArgument(complaint);
  };
}

void read_nnodes(LaunchDraft& draft, const std::string& value) {
  const auto colon = value.find(':');
  NodeRange& nodes = draft.options.nnodes;
  draft.has_nnodes = true;
  nodes.least = whole_number(value.substr(0, colon), 1, kMostNodes);
  nodes.most = colon == std::string::npos ? nodes.least : whole_number(value.substr(colon + 1), 1, kMostNodes);
  if (nodes.least > nodes.most) throw InvalidArgument("MIN is above MAX");
}

void read_devices(LaunchOptions& options, const std::string& value) {
  options.devices = comma_separated(value);
  for (const std::string& device : options.devices)
    if (device.empty()) throw InvalidArgument("must be a list of GPUs such as 0,1,5");
}

void read_backoff(RestartOptions& restarts, const std::string& value) {
  const auto dots = value.find("..");
  restarts.first_backoff = duration(value.substr(0, dots));
  restarts.longest_backoff = dots == std::string::npos ? restarts.first_backoff : duration(value.substr(dots + 2));
  if (restarts.first_backoff > restarts.longest_backoff) throw InvalidArgument("FIRST is longer than LONGEST");
}

void read_signals(LaunchOptions& options, const std::string& value) {
  options.handled_signals.clear();
  for (std::string name : comma_separated(value)) {
    std::erase(name, ' ');  // as torchrun does
    const int number = stopping_signal(name);
    if (number == 0)
      throw InvalidArgument(
          fmt::format("'{}' is not one of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2", name));
    options.handled_signals.push_back(number);
  }
}

void read_filter(LogSpec& logs, const std::string& value) {
  logs.shown.clear();
  for (const std::string& rank : comma_separated(value)) logs.shown.push_back(whole_number(rank, 0, 65535));
}

void read_rdzv_backend(LaunchOptions& options, const std::string& value) {
  if (value != "static" && value != "c10d") throw InvalidArgument("must be static or c10d; etcd is not supported");
  options.rendezvous = value == "static" ? Rendezvous::by_address : Rendezvous::dynamic;
}

/// In torchrun's words.
bool read_is_host(std::string text) {
  constexpr std::string_view kYes[] = {"1", "true", "t", "yes", "y"}, kNo[] = {"0", "false", "f", "no", "n"};
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::tolower(letter); });
  const bool yes = std::ranges::find(kYes, text) != std::end(kYes);
  if (!yes && std::ranges::find(kNo, text) == std::end(kNo)) throw InvalidArgument("is_host must be 1 or 0");
  return yes;
}

void read_rdzv_conf(LaunchOptions& options, const std::string& value) {
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
  for (const std::string& entry : comma_separated(value)) {
    const auto sign = entry.find('=');
    const std::string key = entry.substr(0, sign);
    if (sign == std::string::npos || key.empty()) throw InvalidArgument("must be KEY=VALUE,KEY=VALUE");
    if (std::ranges::find(kKnown, key) == std::end(kKnown))
      throw InvalidArgument(fmt::format("unknown setting '{}'.{}", key, did_you_mean(key, kKnown)));
    if (key == "timeout" || key == "join_timeout") options.join_timeout = duration(entry.substr(sign + 1));
    if (key == "last_call_timeout") options.last_call = duration(entry.substr(sign + 1));
    if (key == "is_host") options.is_host = read_is_host(entry.substr(sign + 1));
  }
}

Options worker_options(LaunchDraft& draft) {
  LaunchOptions& options = draft.options;
  Option nproc =
      option("nproc-per-node", "N",
             "workers on this node; cpu: one per usable processor; gpu: one per GPU; auto: gpu if there is one, else "
             "cpu (default 1, or one per --devices)",
             into(draft.nproc));
  nproc.aliases = {"nprocs"};
  return {nproc,
          option("devices", "LIST", "GPUs to use, as in CUDA_VISIBLE_DEVICES (default all)",
                 [&](const std::string& text) { read_devices(options, text); }),
          flag("virtual-local-rank", "LOCAL_RANK 0 and one visible GPU for every worker", options.virtual_local_rank),
          option("nnodes", "N|MIN:MAX",
                 "nodes of the run; MIN:MAX: elastic, the run continues while nodes join and leave (default 1)",
                 [&](const std::string& text) { read_nnodes(draft, text); }),
          option("node-rank", "N", "rank of this node, from 0 (default 0)",
                 [&](const std::string& text) { options.node_rank = whole_number(text, 0, kMostNodes - 1); }),
          option("role", "NAME", "ROLE_NAME of the workers (default default)", into(options.role)),
          flag("no-python", "the command is a program, not a Python script", draft.is_no_python),
          flag("module", "the command is a Python module", draft.is_module, 'm'),
          flag("run-path", "the command is a Python script, whatever its extension", draft.is_run_path),
          option("start-method", "spawn|fork|forkserver", "accepted for torchrun, without effect (default spawn)",
                 only({"spawn", "fork", "forkserver"}, "must be spawn, fork or forkserver")),
          option("numa-binding", "NAME", "not supported; see `train --pin`", [](const std::string&) {
            throw InvalidArgument("NUMA binding is not supported: leave it out; `train --pin` binds ranks to cores");
          })};
}

Options restart_options(LaunchDraft& draft) {
  LaunchOptions& options = draft.options;
  const auto read_kill_grace = [&](const std::string& text) { options.kill_grace = duration(text); };
  return {option("max-restarts", "N", "restarts of all workers after a failure (default 0)",
                 [&](const std::string& text) { options.restarts.most = whole_number(text, 0, kMost); }),
          option("backoff", "FIRST..LONGEST",
                 "wait before a restart, doubled after each attempt without progress; none before the first restart "
                 "(default 1s..30s)",
                 [&](const std::string& text) { read_backoff(options.restarts, text); }),
          option("min-progress-steps", "N",
                 "steps that at least one of 3 attempts in a row must add, or the run is given up; 0: no limit "
                 "(default 1, for `train` and workers that report their steps)",
                 [&](const std::string& text) { options.restarts.min_progress_steps = whole_number(text, 0, kMost); }),
          option("kill-grace", "TIME", "time between SIGTERM and SIGKILL: 30, 30s, 500ms, 2m (default 30s)",
                 read_kill_grace),
          option("shutdown-timeout", "SECONDS", "torchrun's name of --kill-grace", read_kill_grace),
          option("signals-to-handle", "LIST",
                 "signals that end the run; SIGUSR1 and SIGUSR2 are allowed (default SIGTERM,SIGINT,SIGHUP,SIGQUIT)",
                 [&](const std::string& text) { read_signals(options, text); }),
          option("monitor-interval", "SECONDS", "accepted for torchrun, without effect (default 0.1)",
                 [](const std::string& text) { duration(text); }),
          option("event-log-handler", "NAME", "accepted for torchrun: null (default null)",
                 only({"null"}, "must be null: event handlers are not supported"))};
}

Options output_options(LaunchDraft& draft) {
  LogSpec& logs = draft.options.logs;
  return {
      option("log-dir", "DIR", "folder for stdout.log, stderr.log and error.json, in <run id>/attempt_<n>/<local rank>",
             [&](const std::string& text) {
               if (text.empty()) throw InvalidArgument("must be the path of a folder");
               logs.folder = text;
             }),
      option(
          "redirects", "MAP",
          "streams to write to those files: 0 none, 1 stdout, 2 stderr, 3 both; by local rank: 0:3,12:1 (default 0)",
          [&](const std::string& text) { logs.redirects = StreamMap::from_text(text); }, 'r'),
      option(
          "tee", "MAP", "streams to write to those files and, with a prefix per line, to the terminal (default 0)",
          [&](const std::string& text) { logs.tee = StreamMap::from_text(text); }, 't'),
      option("local-ranks-filter", "LIST", "local ranks whose output is shown (default all)",
             [&](const std::string& text) { read_filter(logs, text); }),
      option("log-prefix", "TEXT",
             "prefix of --tee with ${role_name}, ${rank}, ${local_rank}, ${node_rank}, ${time} (default "
             "[${role_name}${local_rank}]:, or TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE)",
             [&](const std::string& text) { logs.prefix = text; }),
      option("logs-specs", "NAME", "accepted for torchrun: default (default default)",
             only({"default"}, "log plug-ins are not supported: leave it out"))};
}

Options rendezvous_options(LaunchDraft& draft) {
  return {
      flag("standalone", "single-node run with a random run id and a free MASTER_PORT", draft.standalone),
      option("master-addr", "HOST",
             "MASTER_ADDR of the workers, a name or address by which this node reaches node 0 (default 127.0.0.1)",
             into(draft.master_addr)),
      option("master-port", "PORT",
             "MASTER_PORT of the workers (default MASTER_PORT of the environment, or a free one); with several nodes "
             "the port where node 0 listens (default 29500), and the workers get a free one",
             [&](const std::string& text) { draft.master_port = whole_number(text, 1, kHighestPort); }),
      option("listen", "HOST", "with several nodes: address where the leader listens (default all of its host)",
             into(draft.listen)),
      option("rdzv-id", "ID", "TORCHELASTIC_RUN_ID of the workers (default none)", into(draft.run_id)),
      option("rdzv-backend", "static|c10d",
             "rendezvous; static: node 0 listens at --master-port; c10d: the first node on the host of --rdzv-endpoint "
             "that can listen there leads, and node ranks follow the order of joining (default static)",
             [&](const std::string& text) { read_rdzv_backend(draft.options, text); }),
      option("rdzv-endpoint", "HOST[:PORT]",
             "c10d: address of the leader, port 29400 by default; static: the same as --master-addr and --master-port; "
             "not needed on a single node",
             into(draft.rdzv_endpoint)),
      option("rdzv-conf", "K=V,K=V",
             "timeouts in seconds: timeout or join_timeout until the minimum of nodes has joined (default 900), "
             "last_call_timeout for more (default 30); is_host=1 or 0: with c10d, whether this node may lead (default "
             "by its addresses); other keys have no effect",
             [&](const std::string& text) { read_rdzv_conf(draft.options, text); }),
      option("local-addr", "HOST", "address of this node for the others (default detected)", into(draft.local_addr))};
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
    "file that holds it.\n\n"
    "Exit codes:\n"
    "    0  every worker returned 0\n"
    "    N  that of the worker that failed first; 128 + n if signal n killed it\n"
    "    2  usage error\n"
    "    3  this machine cannot start workers, or a log file could not be written\n"
    "  126  the program cannot be executed\n"
    "  127  the program was not found\n"
    "  130  Ctrl-C\n"
    "  131  SIGQUIT\n"
    "  143  SIGTERM or SIGHUP\n"
    "  161  a node, or the leading one, was lost\n";

CommandLine command_line(LaunchDraft& draft) {
  CommandLine line{
      .command = "gradring launch",
      .purpose = "start and supervision of the ranks of a run; if one fails, all stop and start again",
      .usage = {"gradring launch [OPTIONS] train ...", "gradring launch [OPTIONS] bench allreduce ...",
                "gradring launch [OPTIONS] script.py ARGS...", "gradring launch [OPTIONS] -- program ARGS..."},
      .options = {},
      .ends_at_word = true,
      .notes = kNotes};
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

/// Reads one value; the message of an error begins with "--name=value: ".
void read(const Option& option, const std::string& shown, const std::string& text) try {
  option.read(value_text(shown, option.value, text));
} catch (const InvalidArgument& error) {
  throw InvalidArgument(fmt::format("{}={}: {}", shown, text, error.what()));
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
  if (option.is_flag() && *text != "0" && *text != "1")
    throw InvalidArgument(fmt::format("{}={}: must be 0 or 1", variable, *text));
  read(option, variable, *text);
}

/// The line with errors that name the option, and flags that take no value.
CommandLine checked(CommandLine line) {
  for (Option& each : line.options)
    each.read = [raw = each](std::string_view text) {
      if (raw.is_flag() && text != "true") throw UsageError("--" + raw.name + " takes no value");
      read(raw, "--" + raw.name, std::string(text));
    };
  return line;
}

}  // namespace

ParsedLaunch parse_launch(std::span<const std::string> args, const LaunchWorld& world) {
  LaunchDraft draft;
  const CommandLine line = command_line(draft);
  for (const Option& each : line.options) read_variable(each, world.lookup);
  const CommandWords parsed = read_command_line(checked(line), args);
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
