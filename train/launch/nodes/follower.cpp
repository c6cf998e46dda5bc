// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/follower.h"

#include <fmt/format.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "comm/sockets/socket_address.h"
#include "kernels/base/error.h"
#include "train/launch/nodes/token.h"
#include "train/launch/workers/signals.h"
#include "train/launch/workers/worker_files.h"

namespace gradring::train {

using nlohmann::json;

namespace {

bool is_loopback(const std::string& address) { return comm::tcp::SocketAddress(address, 0).is_loopback(); }

}  // namespace

Follower::Follower(const LaunchOptions& options, NodeLink link, WorkerGroup& local, Logger log)
    : options_(options), link_(std::move(link)), local_(local), log_(std::move(log)) {
  link_.send(join_message(request_));
}

std::optional<int> Follower::run() {
  for (auto turn = Steady::now(); !code_;) {
    const auto previous_turn = std::exchange(turn, Steady::now());
    const WorkerEvents events = local_.wait(Deadline::after(NodeLink::kBetweenBeats),
                                            {link_.events(), {mirror_ ? mirror_->fd() : -1, POLLIN, 0}});
    report(events);
    receive();
    link_.beat();
    watch_leader();
    const bool interrupted = silence_ && link_.peer_is_silent() && options_.ends_run(events.signal);
    if (interrupted) link_.close_for_silence();
    if (link_.open() || code_) continue;
    stop_without_leader();
    if (interrupted) return exit_code_after(events.signal);
    const bool was_frozen = Steady::now() - previous_turn > NodeLink::kAgentSilence;
    return was_frozen ? std::nullopt : std::optional<int>(kPeerLost);
  }
  return code_;
}

void Follower::report(const WorkerEvents& events) {
  if (mirror_)
    for (const auto& [name, value] : mirror_->changes()) link_.send(key_message(name, value));
  for (WorkerExit exit : events.exits) {
    exit.host = request_.host;
    link_.send(exit_message({.exit = std::move(exit), .step = local_.furthest_step().value_or(-1)}));
  }
  if (events.signal == SIGTSTP) {
    link_.pause();
    NodeLink* const links[] = {&link_};
    NodeLink::flush(links);
    return local_.suspend();
  }
  if (events.signal == 0) return;
  // An elastic run continues when this node is asked to leave.
  const bool leaves =
      options_.ends_run(events.signal) && exit_code_after(events.signal) == kPreempted && options_.nnodes.elastic();
  link_.send(leaves ? leave_message() : signal_message(events.signal));
}

void Follower::receive() {
  try {
    for (const json& message : link_.receive()) obey(message);
  } catch (const MessageError& error) {
    link_.close(error.what());
  }
}

void Follower::obey(const json& message) {
  const std::string kind = kind_of(message);
  if (kind == "refuse") throw InvalidArgument(refusal_in(message));
  if (kind == "finish") {
    const auto [code, why] = finish_in(message);
    code_ = code;
    if (code != 0)
      log_(fmt::format("the run ended with code {}{}", code, why.empty() ? "; see the output of node 0" : ": " + why));
  }
  if (kind == "signal") local_.send(signal_in(message));
  if (kind == "start") start(start_in(message));
  if (kind != "key" || !mirror_) return;
  const auto [name, value] = entry_in(message);
  mirror_->put(name, value);
}

void Follower::start(const StartMessage& start) {
  const auto& [attempt, assignment, leader_address, nonce] = start;
  if (local_.running()) throw MessageError("it started an attempt while workers of the previous one still run");
  const int workers = options_.nproc_per_node;
  if (assignment.world_size - assignment.first_rank < workers ||
      assignment.role_world_size - assignment.first_role_rank < workers)
    throw MessageError("it assigned fewer ranks than this node has workers");
  silence_.reset();
  local_.prepare(attempt);
  write_rank_token(local_.store(), ranks_secret(options_, nonce).to_text());
  mirror_.emplace(local_.store());
  local_.assign(assignment, address(leader_address));
  local_.start(attempt);
}

std::string Follower::address(const std::string& leader_address) const {
  if (!options_.local_addr.empty() && !is_loopback(options_.local_addr)) return options_.local_addr;
  const std::string own = link_.own_address();
  return is_loopback(own) ? leader_address : own;  // this host is the leader's
}

void Follower::watch_leader() {
  if (!link_.open()) return;
  if (link_.peer_is_silent()) {
    const bool may_go_on = options_.nnodes.elastic() || options_.restarts.most > 0;
    if (!may_go_on || (silence_ && silence_->give_up.passed())) return link_.close_for_silence();
    if (!silence_) stop_for_silence();
  }
  if (!silence_ || !silence_->kill || !silence_->kill->passed()) return;
  local_.send(SIGKILL);
  silence_->kill.reset();
}

/// Once the leader continues, this node counts as lost to the attempt, and is there for the next one.
void Follower::stop_for_silence() {
  log_(
      fmt::format("node 0 sent nothing for {} s, but its host responds: stopping the workers of this node, then "
                  "waiting for it up to {} s",
                  NodeLink::kAgentSilence.count(), std::chrono::duration<double>(options_.join_timeout).count()));
  silence_ = {.kill = Deadline::after(options_.kill_grace), .give_up = Deadline::after(options_.join_timeout)};
  link_.send(stopped_message());
  stop();
}

/// Workers may save, as on preemption.
void Follower::stop() {
  local_.send(SIGTERM);
  local_.send(SIGCONT);
}

/// The destructor of the group kills what is left.
void Follower::stop_without_leader() {
  log_(fmt::format("lost node 0 ({}): stopping the workers of this node", link_.reason()));
  stop();
  const auto deadline = Deadline::after(options_.kill_grace);
  int interrupts = 0;  // the second one kills
  while (local_.running() && !deadline.passed() && interrupts < 2)
    if (local_.wait(deadline).signal == SIGINT) ++interrupts;
}

}  // namespace gradring::train
