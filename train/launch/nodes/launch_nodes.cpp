// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/launch_nodes.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/runtime/error.h"
#include "train/launch/nodes/leader.h"
#include "train/launch/nodes/message.h"
#include "train/launch/nodes/node_link.h"
#include "train/launch/nodes/rendezvous.h"
#include "train/launch/nodes/store_mirror.h"
#include "train/launch/nodes/token.h"
#include "train/launch/signals.h"
#include "train/launch/worker_files.h"
#include "train/launch/worker_group.h"

namespace gradring::train {
namespace {

using nlohmann::json;

/// Dialing times: before the user is told that this node waits; before a process that listens at the leader's address
/// but does not authenticate itself counts as unrelated; and from then on, between attempts to lead.
constexpr std::chrono::seconds kDialTimes[] = {std::chrono::seconds(2), std::chrono::seconds(3),
                                               std::chrono::seconds(30)};
constexpr std::size_t kLastDial = std::size(kDialTimes) - 1;

/// The agent of a node other than the leading one: starts and signals its workers as the leader says and reports how
/// they end. Its only own policy is to stop them when it loses the leader.
class Follower {
 public:
  Follower(const LaunchOptions& options, NodeLink link, WorkerGroup& local, Logger log)
      : options_(options), link_(std::move(link)), local_(local), log_(std::move(log)) {
    if (local_.address().empty()) local_.set_address(link_.own_address());
    link_.send(join_message(request_));
  }

  /// Returns the exit code of the run; 161 if the leader is lost.
  ///
  /// Errors    InvalidArgument if the leader refuses this node.
  int run() {
    while (!code_) {
      report(local_.wait(Deadline::after(NodeLink::kBetweenBeats), {link_.fd(), mirror_ ? mirror_->fd() : -1}));
      try {
        for (const json& message : link_.receive()) obey(message);
      } catch (const MessageError& error) {
        link_.close(error.what());
      }
      link_.beat();
      if (!link_.open() && !code_) return stop_without_leader();
    }
    if (*code_ != 0) log_(fmt::format("the run ended with code {}; see the output of node 0", *code_));
    return *code_;
  }

 private:
  void report(const WorkerEvents& events) {
    if (mirror_)
      for (const auto& [name, value] : mirror_->changes()) link_.send(key_message(name, value));
    for (WorkerExit exit : events.exits) {
      exit.host = request_.host;
      link_.send(exit_message({.exit = std::move(exit), .step = local_.furthest_step().value_or(-1)}));
    }
    if (events.signal == SIGTSTP) {
      link_.pause();
      return local_.suspend();
    }
    if (events.signal == 0) return;
    // An elastic run continues when this node is asked to leave.
    const bool leaves = options_.ends_run(events.signal) && exit_code_after(events.signal) == kPreempted &&
                        options_.nnodes.least < options_.nnodes.most;
    link_.send(leaves ? leave_message() : signal_message(events.signal));
  }

  void obey(const json& message) {
    const std::string kind = kind_of(message);
    if (kind == "refuse") throw InvalidArgument(refusal_in(message));
    if (kind == "finish") code_ = finish_code_in(message);
    if (kind == "signal") local_.send(signal_in(message));
    if (kind == "start") start(attempt_in(message), assignment_in(message), nonce_in(message));
    if (kind != "key" || !mirror_) return;
    const auto [name, value] = entry_in(message);
    mirror_->put(name, value);
  }

  void start(int attempt, const NodeAssignment& assignment, const std::string& nonce) {
    if (local_.running()) throw MessageError("it started an attempt while workers of the previous one still run");
    const int workers = options_.nproc_per_node;
    if (assignment.world_size - assignment.first_rank < workers ||
        assignment.role_world_size - assignment.first_role_rank < workers)
      throw MessageError("it assigned fewer ranks than this node has workers");
    local_.prepare(attempt);
    write_rank_token(local_.store(), ranks_secret(options_, nonce).to_text());
    mirror_.emplace(local_.store());
    local_.set_assignment(assignment);
    local_.start(attempt);
  }

  int stop_without_leader() {
    log_(fmt::format("lost node 0 ({}): stopping the workers of this node", link_.reason()));
    local_.send(SIGTERM);
    local_.send(SIGCONT);
    const auto deadline = Deadline::after(options_.kill_grace);
    int interrupts = 0;  // the second one kills
    while (local_.running() && !deadline.passed() && interrupts < 2)
      if (local_.wait(deadline).signal == SIGINT) ++interrupts;
    return kPeerLost;  // the destructor of the group kills the rest
  }

  const LaunchOptions& options_;
  const JoinRequest request_ = join_request_of(options_);
  NodeLink link_;
  WorkerGroup& local_;
  const Logger log_;
  std::optional<StoreMirror> mirror_;
  std::optional<int> code_;
};

int follow(const LaunchOptions& options, NodeLink link, Terminals& terminals, const Logger& log) {
  WorkerGroup local(options, terminals);
  return Follower(options, std::move(link), local, log).run();
}

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
  const int code = run_attempts(options, leader, log);
  leader.finish(code);
  return code;
}

Acceptor listen(const LaunchOptions& options) {
  return Acceptor(options.master_addr, options.master_port, identity_of(options, AgentRole::leader));
}

/// With a dynamic rendezvous, the first agent that can listen at the endpoint leads. `retry`: a process that already
/// listens there may still authenticate itself as the leader.
///
/// Errors    AddressInUse unless `retry`.
std::optional<Acceptor> listen_if_free(const LaunchOptions& options, bool retry) try {
  return listen(options);
} catch (const AddressInUse&) {
  if (!retry) throw;
  return std::nullopt;
} catch (const DeviceError&) {  // not an address of this host: it follows
  return std::nullopt;
}

}  // namespace

int launch_nodes(const LaunchOptions& options, Terminals& terminals, const Logger& log) {
  const bool dynamic = options.rendezvous == Rendezvous::dynamic, has_token = !options.token.empty();
  LaunchOptions leading = options, following = options;
  if (!has_token) leading.token = random_token();
  if (!dynamic && options.node_rank == 0) return lead(leading, !has_token, listen(leading), terminals, log);

  // Nothing needs cleanup yet: signals end this process by default.
  const auto find_identity = [&]() -> std::optional<comm::tcp::Identity> {
    if (!has_token) {
      check_leader_is_here(options);
      following.token = SharedToken::find(options).value_or("");
    }
    if (following.token.empty()) return std::nullopt;
    return identity_of(following, AgentRole::follower);
  };
  const std::string leader = "the leading node at " + endpoint_text(options.master_addr, options.master_port);
  const auto deadline = Deadline::after(options.join_timeout);
  std::string tried;
  for (std::size_t dial = 0; !deadline.passed(); ++dial) {
    if (auto acceptor = dynamic ? listen_if_free(leading, dial != kLastDial) : std::nullopt)
      return lead(leading, !has_token, std::move(*acceptor), terminals, log);
    if (dial == 1) log(fmt::format("waiting for {}; tried so far:{}", leader, tried));
    const auto time = std::min<std::chrono::nanoseconds>(deadline.remaining(), kDialTimes[std::min(dial, kLastDial)]);
    auto link = dial_leader(options.master_addr, options.master_port, find_identity, Deadline::after(time), tried);
    if (link) return follow(following, std::move(*link), terminals, log);
  }
  throw DeviceError(fmt::format("cannot reach {}; tried last:{}", leader, tried));
}

}  // namespace gradring::train
