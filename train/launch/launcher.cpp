// SPDX-License-Identifier: Apache-2.0
#include "train/launch/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "comm/sockets/resolve.h"
#include "comm/sockets/socket_address.h"
#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "kernels/base/printable.h"
#include "kernels/base/processors.h"
#include "train/launch/nodes/follower.h"
#include "train/launch/nodes/leader.h"
#include "train/launch/nodes/node_link.h"
#include "train/launch/nodes/rendezvous.h"
#include "train/launch/nodes/token.h"
#include "train/launch/options/parse_launch.h"
#include "train/launch/workers/attempt.h"
#include "train/launch/workers/host.h"
#include "train/launch/workers/signals.h"
#include "train/launch/workers/worker_group.h"
#include "train/options/print_text.h"

namespace gradring::train {
namespace {

constexpr auto kDrainTimeoutWhenStopped = std::chrono::seconds(2);

int launch_one_node(const LaunchOptions& options, Terminals& terminals, const Logger& log) {
  WorkerGroup workers(options, terminals);
  if (workers.logs().is_temporary()) log("output goes to " + workers.logs().path().string());
  return run_attempts(options, workers, log);
}

using comm::tcp::Identity;

constexpr std::chrono::milliseconds kRetryInterval(200);
/// Before the user is told, once, what this agent waits for.
constexpr std::chrono::seconds kReportDelay(2);
/// Before a process that listens at the port but does not authenticate itself as the leader counts as unrelated.
constexpr std::chrono::seconds kLeaderDelay(5);

/// The pipes, the log files and the pidfd of a worker while it starts, and what the agent opens besides.
std::size_t descriptors_of(const LaunchOptions& options) {
  constexpr std::size_t kOfAWorker = 9, kOfTheAgent = 24;
  return kOfTheAgent + kOfAWorker * static_cast<std::size_t>(options.nproc_per_node) +
         static_cast<std::size_t>(options.nnodes.most);
}

bool leads(const LaunchOptions& options) {
  if (options.rendezvous == Rendezvous::by_address) return options.node_rank == 0;
  return options.is_host ? *options.is_host : is_this_host(options.master_addr);
}

/// How this agent joins its run: it listens, or dials the agent that does. What may change is tried again until the
/// deadline: names without an address, hosts and listeners that are not there yet.
class Joining {
 public:
  Joining(const LaunchOptions& options, const Logger& log) : options_(options), log_(log) {
    if (generates_token()) leading_.token = random_token();
  }

  /// The user has set no token.
  bool generates_token() const { return options_.token.empty(); }
  const LaunchOptions& leading() const { return leading_; }
  const LaunchOptions& following() const { return following_; }

  /// Sets one of both.
  ///
  /// Errors    DeviceError that says what was tried last, at the deadline; InvalidArgument.
  void join(std::optional<Acceptor>& acceptor, std::optional<NodeLink>& link) {
    for (bool told = false;; std::this_thread::sleep_for(kRetryInterval)) {
      Reasons reasons;
      if (find_own_address(reasons)) {
        acceptor = listen(reasons);
        if (!acceptor && !is_node_0()) link = dial(deadline_, reasons);
      }
      if (acceptor || link) return;
      if (deadline_.passed())
        throw DeviceError(fmt::format("cannot {} within {} s: {}", goal(), seconds(), reasons.text()));
      if (waited() >= kReportDelay && !std::exchange(told, true))
        log_(fmt::format("waiting up to {} s to {}: {}", seconds(), goal(), reasons.text()));
    }
  }

  /// Dials once, for an agent that the leader has given up; nothing if that has ended.
  std::optional<NodeLink> join_again() try {
    log_("this agent did not run for a while: joining the run again");
    Reasons reasons;
    auto link = dial(Deadline::after(NodeLink::kAgentSilence), reasons);
    if (!link) log_(fmt::format("cannot {}: {}", goal(), reasons.text()));
    return link;
  } catch (const InvalidArgument& error) {
    log_(error.what());
    return std::nullopt;
  }

 private:
  bool is_node_0() const { return options_.rendezvous == Rendezvous::by_address && options_.node_rank == 0; }
  std::chrono::nanoseconds waited() const { return options_.join_timeout - deadline_.remaining(); }
  double seconds() const { return std::chrono::duration<double>(options_.join_timeout).count(); }
  std::string goal() const {
    const std::string& host = is_node_0() ? options_.listen : options_.master_addr;
    return (is_node_0() ? "listen at " : "reach the leading node at ") +
           comm::tcp::endpoint_text(host, options_.master_port);
  }

  /// Makes --local-addr numeric.
  bool find_own_address(Reasons& reasons) try {
    if (!options_.local_addr.empty()) leading_.local_addr = following_.local_addr = own_address(options_.local_addr);
    return true;
  } catch (const comm::tcp::UnresolvedName& error) {
    reasons.add(error.what());
    return false;
  }

  /// With a dynamic rendezvous, the first agent that can listen on the endpoint's host leads.
  std::optional<Acceptor> listen(Reasons& reasons) try {
    if (!leads(options_)) return std::nullopt;
    return Acceptor(options_.listen, options_.master_port, identity_of(leading_, AgentRole::leader),
                    options_.nnodes.most, descriptors_of(options_));
  } catch (const comm::tcp::AddressInUse& error) {
    if (is_node_0())  // as every agent is by default, so two of them are a common mistake
      throw DeviceError(
          fmt::format("{}\n  if node 0 of this run listens there, this is another node: give it "
                      "--node-rank, from 1 to {} (default 0)",
                      error.what(), options_.nnodes.most - 1));
    if (waited() >= kLeaderDelay) throw;
    reasons.add(error.what());
    return std::nullopt;
  } catch (const comm::tcp::UnresolvedName& error) {
    reasons.add(error.what());
    return std::nullopt;
  }

  std::optional<NodeLink> dial(Deadline deadline, Reasons& reasons) {
    return dial_leader(options_.master_addr, options_.master_port, identity(), deadline, reasons);
  }

  /// What this agent proves as a follower; nothing while it does not know the token.
  std::optional<Identity> identity() {
    if (generates_token()) {
      check_leader_is_here(options_);
      following_.token = SharedToken::find(options_).value_or("");
    }
    if (following_.token.empty()) return std::nullopt;
    return identity_of(following_, AgentRole::follower);
  }

  const LaunchOptions& options_;
  const Logger& log_;
  LaunchOptions leading_ = options_, following_ = options_;
  const Deadline deadline_ = Deadline::after(options_.join_timeout);
};

/// `generated_token`: the user has set none.
int lead(const LaunchOptions& options, bool generated_token, Acceptor acceptor, Terminals& terminals,
         const Logger& log) {
  WorkerGroup local(options, terminals);
  std::optional<SharedToken> shared;
  if (generated_token) {
    shared.emplace(options, local.folder());
    log("GRADRING_TOKEN is not set: generated a token for agents of this user on this host; for agents on other hosts, "
        "set the same GRADRING_TOKEN on every node");
  }
  Leader leader(options, std::move(acceptor), local, log);
  try {
    const int code = run_attempts(options, leader, log);
    leader.finish(code);
    return code;
  } catch (const Error& error) {
    leader.finish(kEnvironment, error.what());
    throw;
  }
}

std::optional<int> follow(const LaunchOptions& options, NodeLink link, Terminals& terminals, const Logger& log) {
  WorkerGroup local(options, terminals);
  return Follower(options, std::move(link), local, log).run();
}

/// launch() for a run on several nodes, of which this one is `node_rank`. Node 0 leads: it listens at master_port and
/// decides what the agents of the other nodes, its followers, do. These dial master_addr. All nodes return the same
/// code; the followers return 161 if node 0 is lost.
///
/// Errors    InvalidArgument if node 0 refuses this node; DeviceError if the nodes do not connect in time.
int launch_nodes(const LaunchOptions& options, Terminals& terminals, const Logger& log) {
  // Nothing needs cleanup while it joins: signals end this process by default.
  Joining joining(options, log);
  std::optional<Acceptor> acceptor;
  std::optional<NodeLink> link;
  joining.join(acceptor, link);
  if (acceptor) return lead(joining.leading(), joining.generates_token(), std::move(*acceptor), terminals, log);
  while (link) {
    if (const auto code = follow(joining.following(), std::move(*link), terminals, log)) return *code;
    link = joining.join_again();
  }
  return kPeerLost;
}

int print_error(const std::exception& error, ExitCode code) {
  print_to_stderr(fmt::format("gradring launch: {}\n", error.what()));
  return code;
}

}  // namespace

int launch(const LaunchOptions& options) {
  check(!options.program.empty(), "launch needs a program to run");
  check(options.nproc_per_node > 0, "launch needs at least one worker");
  Terminals terminals;
  const Logger log = [&](const std::string& line) {
    terminals.err.write(printable(fmt::format("{}: {}\n", options.title, line), "\n\t"));
  };
  terminals.out.on_failure = [&](int error) {
    log(fmt::format("cannot write standard output: {}; the run continues, the output of its workers is dropped",
                    std::strerror(error)));
  };
  if (is_wildcard_address(options.master_addr))
    log(fmt::format(
        "warning: the master address {} (--master-addr, --rdzv-endpoint) is every interface of this host: a program "
        "that listens there is open to the network, and other nodes cannot connect to it; expected an address of node "
        "0 that the other nodes can reach, or 127.0.0.1 on one machine",
        options.master_addr));
  bool logs_complete = true;
  terminals.on_log_failure = [&](const std::filesystem::path& file, int error) {
    if (std::exchange(logs_complete, false))
      log(
          fmt::format("cannot write {}: {}; the run continues, further output to such logs is lost: free space there, "
                      "or choose another --log-dir",
                      file.string(), std::strerror(error)));
  };
  const int code =
      options.nnodes.most > 1 ? launch_nodes(options, terminals, log) : launch_one_node(options, terminals, log);
  // A paused reader delays the end of the launcher, as of any program, unless a signal ended the run.
  const bool stopped = code == exit_code_after(SIGINT) || code == exit_code_after(SIGQUIT) || code == kPreempted;
  const auto deadline = stopped ? std::optional(Deadline::after(kDrainTimeoutWhenStopped)) : std::nullopt;
  terminals.out.finish(deadline);
  terminals.err.finish(deadline);
  return code == kOk && !logs_complete ? kEnvironment : code;
}

int spawn_ranks(int nprocs, const std::vector<std::string>& arguments, const std::string& program) {
  return launch({.program = program.empty() ? own_program() : program,
                 .arguments = arguments,
                 .nproc_per_node = nprocs,
                 .title = "gradring"});
}

std::string own_program() {
  constexpr const char* kSelf = "/proc/self/exe";
  char path[PATH_MAX];
  const ssize_t length = ::readlink(kSelf, path, sizeof(path));
  const std::string program(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  // If the file was deleted or replaced, the link still opens the program, but its text does not.
  return ::access(program.c_str(), X_OK) == 0 ? program : kSelf;
}

int launch_main(std::span<const std::string> args) {
  try {
    const ParsedLaunch parsed = parse_launch(args, {.lookup = system_variable,
                                                    .cores = usable_processors(),
                                                    .gpus = visible_gpus(system_variable),
                                                    .own_program = own_program(),
                                                    .random_run_id = random_run_id});
    if (!parsed.help) return launch(parsed.options);
  } catch (const InvalidArgument& error) {
    return print_error(error, kUsage);
  } catch (const std::exception& error) {  // no folder, process or memory
    return print_error(error, kEnvironment);
  }
  print_shown(launch_help());  // main() reports a failure to write it
  return kOk;
}

}  // namespace gradring::train
