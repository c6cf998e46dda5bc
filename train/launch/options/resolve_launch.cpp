// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "train/launch/options/launch_draft.h"
#include "train/launch/workers/private_folder.h"
#include "train/launch/workers/signals.h"
#include "train/launch/workers/worker_environment.h"
#include "train/options/parse_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr const char* kDefaultPort = ":29400";  // c10d's
constexpr int kStaticPort = 29500;              // where node 0 of several listens

int number_of_workers(const LaunchDraft& draft, const LaunchWorld& world) {
  constexpr const char* kOption = "nproc-per-node";
  const auto devices = static_cast<int>(draft.options.devices.size());
  const int gpus = devices == 0 ? world.gpus : devices;
  if (!draft.nproc) return std::max(1, devices);
  const std::string& text = *draft.nproc;
  if (text == "xpu") throw bad_value(kOption, text, "xpu is not supported: give the number of workers");
  if (text == "gpu" && gpus == 0)
    throw bad_value(kOption, text, "no GPU was found: give the number of workers, or cpu");
  if (text == "gpu" || (text == "auto" && gpus > 0)) return gpus;
  if (text == "auto" || text == "cpu") return world.cores;
  return static_cast<int>(parse_integer(kOption, text, {.least = 1, .most = kMostWorkersPerNode}));
}

void resolve_workers(LaunchDraft& draft, const LaunchWorld& world) {
  LaunchOptions& options = draft.options;
  options.nproc_per_node = number_of_workers(draft, world);
  const auto devices = static_cast<int>(options.devices.size());
  if (devices > 0 && options.nproc_per_node > devices)
    throw InvalidArgument(
        fmt::format("--nproc-per-node={} is more than the {} GPUs of --devices: name more GPUs, or start fewer",
                    options.nproc_per_node, devices));
  if (options.virtual_local_rank && devices == 0) {
    options.devices = comma_separated(world.lookup("CUDA_VISIBLE_DEVICES").value_or(""));
    for (int i = static_cast<int>(options.devices.size()); i < options.nproc_per_node; ++i)
      options.devices.push_back(std::to_string(i));
  }
}

/// An old PyTorchJob operator sets only rank and world size of the pods.
void use_pytorch_job(LaunchDraft& draft, const LaunchWorld& world) {
  draft.options.nnodes = draft.nnodes.value_or(NodeRange());
  if (draft.nnodes || draft.standalone || draft.options.rendezvous == Rendezvous::dynamic) return;
  const auto pod = detect_pytorch_job(world.lookup);
  if (!pod || pod->world_size == 1) return;
  draft.options.nnodes = {pod->world_size, pod->world_size};
  draft.options.node_rank = pod->rank;
  draft.master_addr = draft.master_addr.value_or(pod->master_addr);
  draft.master_port = draft.master_port.value_or(pod->master_port);
}

void resolve_nodes(const LaunchDraft& draft) {
  const LaunchOptions& options = draft.options;
  if (options.node_rank >= options.nnodes.most)
    throw InvalidArgument(fmt::format("--node-rank={} is outside --nnodes={}: nodes go from 0 to {}", options.node_rank,
                                      options.nnodes.most, options.nnodes.most - 1));
  if (options.nnodes.most == 1) return;
  if (options.rendezvous == Rendezvous::by_address && !draft.standalone && !draft.master_addr &&
      draft.rdzv_endpoint.value_or("").empty())
    throw InvalidArgument("--nnodes above 1 needs --master-addr=HOST, an address of node 0 that the others reach");
  if (draft.standalone) throw InvalidArgument("--standalone is for one machine: leave it out, or --nnodes");
}

void check_ranks(const char* option, int highest, int workers) {
  if (highest >= workers)
    throw InvalidArgument(fmt::format("{} names local rank {}, but the {} workers here go from 0 to {}", option,
                                      highest, workers, workers - 1));
}

void resolve_logs(const LaunchDraft& draft) {
  const LaunchOptions& options = draft.options;
  check_ranks("--redirects", options.logs.redirects.highest_rank(), options.nproc_per_node);
  check_ranks("--tee", options.logs.tee.highest_rank(), options.nproc_per_node);
  const auto& shown = options.logs.shown;
  check_ranks("--local-ranks-filter", shown.empty() ? -1 : std::ranges::max(shown), options.nproc_per_node);
}

/// An IPv6 address may be in brackets, and must be before a port.
std::string without_brackets(const std::string& host) {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

/// Also with a zone, as in fe80::1%eth0.
bool is_ipv6(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &address) == 1;
}

/// What can be no name would be looked up until the deadline.
bool can_be_host(const std::string& host) {
  return !host.empty() && host.find_first_of(" \t\n/[]") == std::string::npos &&
         (host.find(':') == std::string::npos || is_ipv6(host));
}

/// Without brackets.
std::string host_in(const char* option, const std::string& text) {
  std::string host = without_brackets(text);
  if (!can_be_host(host)) throw bad_value(option, text, "must be a host name or an address, without a port");
  return host;
}

bool has_port(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  if (colon == std::string::npos || endpoint.ends_with(']')) return false;
  return endpoint.find(':') == colon || endpoint[colon - 1] == ']';
}

/// "host:29500", "[::1]:29500"
void read_endpoint(const std::string& endpoint, std::string& host, int& port) {
  constexpr const char* kOption = "rdzv-endpoint";
  if (!has_port(endpoint)) throw bad_value(kOption, endpoint, "must be HOST:PORT, or [ADDRESS]:PORT of IPv6");
  const auto colon = endpoint.rfind(':');
  host = without_brackets(endpoint.substr(0, colon));
  if (host.empty()) throw bad_value(kOption, endpoint, "must be HOST:PORT");
  if (!can_be_host(host))
    throw bad_value(
        kOption, endpoint,
        fmt::format("'{}' is neither a host name nor an IPv6 address: it must be HOST:PORT, or [ADDRESS]:PORT", host));
  port = static_cast<int>(parse_integer(kOption, endpoint.substr(colon + 1), {.least = 1, .most = kHighestPort}));
}

/// The port that the user has chosen for the workers; 0 for none. That of an outer launcher is in use by its workers.
int port_in_environment(const VariableLookup& lookup) try {
  const std::string port = lookup("MASTER_PORT").value_or("");
  if (port.empty() || lookup("TORCHELASTIC_RUN_ID")) return 0;
  return static_cast<int>(parse_integer("master-port", port, {.least = 1, .most = kHighestPort}));
} catch (const InvalidArgument& error) {
  throw UsageError(fmt::format("MASTER_PORT: {}", error.what()));
}

void resolve_static(LaunchDraft& draft, const LaunchWorld& world) {
  LaunchOptions& options = draft.options;
  if (draft.rdzv_endpoint && !draft.rdzv_endpoint->empty()) {
    read_endpoint(*draft.rdzv_endpoint, options.master_addr, options.master_port);
    if (without_brackets(draft.master_addr.value_or(options.master_addr)) != options.master_addr ||
        draft.master_port.value_or(options.master_port) != options.master_port)
      throw InvalidArgument(fmt::format("--rdzv-endpoint={} contradicts --master-addr and --master-port: leave one out",
                                        *draft.rdzv_endpoint));
  }
  if (draft.master_addr) options.master_addr = host_in("master-addr", *draft.master_addr);
  options.master_port = draft.master_port.value_or(options.master_port);
  if (options.master_port == 0)
    options.master_port = options.nnodes.most > 1 ? kStaticPort : port_in_environment(world.lookup);
}

/// With several nodes the endpoint is the rendezvous; with one, MASTER_ADDR is this host.
void resolve_dynamic(LaunchDraft& draft) {
  LaunchOptions& options = draft.options;
  if (options.nnodes.most > 1) {
    const std::string endpoint = draft.rdzv_endpoint.value_or("");
    if (endpoint.empty())
      throw InvalidArgument("--rdzv-backend=c10d over several machines needs --rdzv-endpoint=HOST:PORT");
    const std::string bracketed =
        endpoint.find(':') == std::string::npos ? endpoint : "[" + without_brackets(endpoint) + "]";
    read_endpoint(has_port(endpoint) ? endpoint : bracketed + kDefaultPort, options.master_addr, options.master_port);
    return;
  }
  options.master_addr = options.local_addr.empty() ? "localhost" : options.local_addr;
  if (draft.master_addr) options.master_addr = host_in("master-addr", *draft.master_addr);
  options.master_port = draft.master_port.value_or(0);
}

CommandKind kind_of(const LaunchDraft& draft) {
  if (draft.is_run_path) return CommandKind::python_script;  // as torchrun ranks them
  if (draft.is_module && draft.is_no_python)
    throw InvalidArgument("--module and --no-python exclude each other: leave one out");
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

/// Exit codes of this program that a restart would only repeat, or that were requested, are final. A training that
/// never saves a checkpoint makes no progress.
void run_own(std::span<const std::string> words, LaunchOptions& options, const LaunchWorld& world) {
  options.program = world.own_program;
  options.arguments.assign(words.begin(), words.end());
  options.restarts.final_codes = {
      kUsage, kBadData, kDiverged, kPreempted, exit_code_after(SIGINT), exit_code_after(SIGQUIT)};
  if (words.front() == "train" && !options.restarts.min_progress_steps) options.restarts.min_progress_steps = 1;
}

void read_by_first_word(std::span<const std::string> words, LaunchOptions& options, const LaunchWorld& world) {
  const std::string& first = words.front();
  if (first == "train" || first == "bench") return run_own(words, options, world);
  if (first.ends_with(".py")) return run_python(words, false, options, world);
  throw InvalidArgument(fmt::format(
      "'{0}' is neither `train` nor `bench` nor a Python script: to run another program, use `-- {0} ...`", first));
}

}  // namespace

void read_command(std::span<const std::string> words, LaunchDraft& draft, const LaunchWorld& world) {
  CommandKind kind = kind_of(draft);
  if (!words.empty() && words.front() == "--") {
    words = words.subspan(1);
    if (kind == CommandKind::by_first_word) kind = CommandKind::program;
  }
  if (words.empty() || words.front().empty())
    throw InvalidArgument(
        "no command to run: give `train ...`, or `-- PROGRAM ARGUMENTS...`; see gradring launch --help");
  switch (kind) {
    case CommandKind::program: return run_program(words, draft.options);
    case CommandKind::python_module: return run_python(words, true, draft.options, world);
    case CommandKind::python_script: return run_python(words, false, draft.options, world);
    case CommandKind::by_first_word: return read_by_first_word(words, draft.options, world);
  }
}

void resolve_launch(LaunchDraft& draft, const LaunchWorld& world) {
  resolve_workers(draft, world);
  use_pytorch_job(draft, world);
  resolve_nodes(draft);
  resolve_logs(draft);
  if (!draft.local_addr.value_or("").empty()) draft.options.local_addr = host_in("local-addr", *draft.local_addr);
  if (draft.listen) draft.options.listen = host_in("listen", *draft.listen);
  if (draft.options.nnodes.most > 1) draft.options.token = given_token(world.lookup);
  draft.options.run_id = draft.run_id.value_or(draft.standalone ? world.random_run_id() : "none");
  if (draft.standalone) draft.options.rendezvous = Rendezvous::dynamic;
  draft.options.rendezvous == Rendezvous::dynamic ? resolve_dynamic(draft) : resolve_static(draft, world);
}

}  // namespace gradring::train
