// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/leader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/sockets/socket_address.h"
#include "kernels/base/error.h"
#include "train/launch/nodes/token.h"
#include "train/launch/workers/host.h"
#include "train/launch/workers/worker_files.h"

namespace gradring::train {

using comm::tcp::SocketAddress;
using nlohmann::json;

namespace {

std::string to_string(const NodeRange& nodes) {
  return nodes.least == nodes.most ? std::to_string(nodes.most) : fmt::format("{}:{}", nodes.least, nodes.most);
}

/// The last agent may receive a signal this much later than the first: more than a network needs, less than a user who
/// sends it twice.
constexpr auto kSignalSpread = std::chrono::seconds(2);

}  // namespace

NodeTable::NodeTable(Acceptor acceptor, const JoinRequest& own)
    : own_(own), acceptor_(std::move(acceptor)), slots_(static_cast<std::size_t>(own.nodes.most)) {
  slots_[0].request = own;
}

int NodeTable::present() const { return 1 + static_cast<int>(std::ranges::count_if(slots_, &NodeSlot::joined)); }

std::int64_t NodeTable::total_workers() const {
  std::int64_t sum = own_.workers;
  for (const NodeSlot& slot : slots_)
    if (slot.joined()) sum += slot.request.workers;
  return sum;
}

std::string NodeTable::missing() const {
  std::string names;
  for (std::size_t node = 1; node < slots_.size(); ++node)
    if (!slots_[node].joined()) names += fmt::format("{}node {}", names.empty() ? "" : ", ", node);
  return names;
}

std::vector<pollfd> NodeTable::events() const {
  std::vector<pollfd> events;
  for (const int fd : acceptor_.fds()) events.push_back({fd, POLLIN, 0});
  for (const NodeLink& link : joining_) events.push_back(link.events());
  for (const NodeSlot& slot : slots_)
    if (slot.joined()) events.push_back(slot.link->events());
  return events;
}

bool NodeTable::admit() {
  bool changed = false;
  for (auto& admitted : acceptor_.admit()) joining_.emplace_back(std::move(admitted.socket));
  for (auto it = joining_.begin(); it != joining_.end();) {
    const std::vector<json> messages = it->receive(1);  // later ones are for the leader, once the node has its slot
    const bool has_request = !messages.empty();
    if (has_request) try {
        const JoinRequest request = join_request_in(messages.front());
        changed |= join(std::move(*it), request);
      } catch (const MessageError& error) {
        it->send(refuse_message(fmt::format("the leader rejected this node: {}", error.what())));
      }
    it = has_request || !it->open() ? joining_.erase(it) : std::next(it);
  }
  return changed;
}

bool NodeTable::join(NodeLink link, JoinRequest request) {
  const auto refuse = [&](const std::string& why) {
    link.send(refuse_message(why));
    last_refusal_ = why;
    return false;
  };
  if (request.nodes.least != own_.nodes.least || request.nodes.most != own_.nodes.most)
    return refuse(fmt::format("the leader has --nnodes={}, {} has --nnodes={}: they must be the same",
                              to_string(own_.nodes), request.host, to_string(request.nodes)));
  const bool any = request.node < 0;
  if (request.node == 0 || request.node >= own_.nodes.most)
    return refuse(
        fmt::format("invalid --node-rank={}: expected a number from 1 to {}", request.node, own_.nodes.most - 1));
  if (const std::int64_t ranks = total_workers() + request.workers; ranks > kLargestWorld)
    return refuse(fmt::format("the run would have {} workers, expected at most {}: lower --nproc-per-node", ranks,
                              kLargestWorld));
  NodeSlot* slot = any ? free_slot() : &slots_[static_cast<std::size_t>(request.node)];
  if (slot == nullptr) return refuse(fmt::format("all {} nodes have joined already", own_.nodes.most));
  if (slot->joined())
    return refuse(
        fmt::format("--node-rank={} is in use by {}: give each node its own", request.node, slot->request.host));
  request.node = static_cast<int>(slot - slots_.data());
  *slot = NodeSlot{.request = std::move(request), .link = std::move(link)};
  return true;
}

NodeSlot* NodeTable::free_slot() {
  const auto it = std::find_if(slots_.begin() + 1, slots_.end(), [](const NodeSlot& slot) { return !slot.joined(); });
  return it == slots_.end() ? nullptr : &*it;
}

void NodeTable::send_to_all(const json& message) {
  for (NodeSlot& slot : slots_)
    if (slot.joined()) slot.link->send(message);
}

void NodeTable::flush() {
  std::vector<NodeLink*> links;
  for (NodeSlot& slot : slots_)
    if (slot.joined()) links.push_back(&*slot.link);
  NodeLink::flush(links);
}

std::vector<NodeAssignment> assign_ranks(std::span<const JoinRequest> requests, int master_port) {
  std::vector<NodeAssignment> assignments;
  std::map<std::string, int> in_role;
  int ranks = 0;
  for (const JoinRequest& request : requests) {
    assignments.push_back({.node = static_cast<int>(assignments.size()),
                           .nodes = static_cast<int>(requests.size()),
                           .first_rank = ranks,
                           .first_role_rank = in_role[request.role],
                           .master_port = master_port});
    ranks += request.workers;
    in_role[request.role] += request.workers;
  }
  for (std::size_t node = 0; node < assignments.size(); ++node) {
    assignments[node].world_size = ranks;
    assignments[node].role_world_size = in_role[requests[node].role];
  }
  return assignments;
}

bool SignalDeduplicator::is_new(int number, int node, Clock::time_point now) {
  const auto found = latest_.find(number);
  const bool recent = found != latest_.end() && now - found->second.when < kSignalSpread;
  if (recent && found->second.nodes.insert(node).second) return false;
  latest_[number] = {now, {node}};
  return true;
}

Leader::Leader(const LaunchOptions& options, Acceptor acceptor, WorkerGroup& local, Logger log)
    : options_(options), local_(local), log_(std::move(log)), nodes_(std::move(acceptor), join_request_of(options)) {}

void Leader::start(int attempt) {
  wait_for_nodes();
  node_lost_ = false;
  assign_workers(attempt);
  local_.start(attempt);
}

void Leader::release_leaving() {
  const auto leaves = [](const NodeSlot& slot) { return slot.joined() && slot.leaving; };
  if (std::ranges::none_of(nodes_.slots(), leaves)) return;
  for (NodeSlot& slot : nodes_.slots())
    if (leaves(slot)) slot.link->send(finish_message(kPreempted));
  nodes_.flush();
  for (NodeSlot& slot : nodes_.slots())
    if (leaves(slot)) slot = {};
}

bool Leader::enough(const Deadline& last_call) const {
  const int present = nodes_.present();
  return present == options_.nnodes.most || (present >= options_.nnodes.least && last_call.passed());
}

void Leader::wait_for_nodes() {
  const auto deadline = Deadline::after(options_.join_timeout);
  auto last_call = Deadline::after(options_.last_call);
  bool reported = false;
  release_leaving();
  for (int before = nodes_.present(); !enough(last_call);) {
    const bool few = nodes_.present() < options_.nnodes.least;
    if (few && deadline.passed())
      throw DeviceError(fmt::format(
          "{} did not join within {} s{}: start `gradring launch` there with the same address, port and --rdzv-id",
          nodes_.missing(), std::chrono::duration<double>(options_.join_timeout).count(),
          nodes_.last_refusal().empty() ? "" : fmt::format(" (rejected a node: {})", nodes_.last_refusal())));
    wait_without_workers(few ? deadline : last_call);
    release_leaving();
    if (std::exchange(before, nodes_.present()) < options_.nnodes.least)
      last_call = Deadline::after(options_.last_call);
    if (!std::exchange(reported, true) && !enough(last_call))
      log_(fmt::format("waiting for {}; listening at {}", nodes_.missing(), nodes_.where()));
  }
}

void Leader::wait_without_workers(const Deadline& deadline) {
  const int signal = wait(deadline).signal;
  if (signal == SIGTSTP) suspend();
  if (options_.ends_run(signal)) throw StartInterrupted{signal};
}

void Leader::assign_workers(int attempt) {
  std::vector<NodeSlot*> present = {&nodes_.slots()[0]};
  for (NodeSlot& slot : nodes_.slots())
    if (slot.joined()) present.push_back(&slot);
  std::vector<JoinRequest> requests;
  for (const NodeSlot* slot : present) requests.push_back(slot->request);
  const auto assignments = assign_ranks(requests, free_tcp_port());

  world_size_ = assignments[0].world_size;
  furthest_step_ = furthest_step();
  const std::string nonce = random_token();
  local_.prepare(attempt);
  write_rank_token(local_.store(), ranks_secret(options_, nonce).to_text());
  mirror_.emplace(local_.store());
  const std::string own = address(present);
  local_.assign(assignments[0], own);
  for (std::size_t i = 1; i < present.size(); ++i) {
    for (int rank = 0; rank < requests[i].workers; ++rank) present[i]->running.insert(assignments[i].first_rank + rank);
    present[i]->link->send(start_message({attempt, assignments[i], own, nonce}));
  }
}

/// That by which a node on another host reaches this one; agents of this host may use a loopback address.
std::string Leader::address(const std::vector<NodeSlot*>& present) const {
  const auto is_loopback = [](const std::string& address) { return SocketAddress(address, 0).is_loopback(); };
  std::string own = options_.local_addr.empty() ? "127.0.0.1" : options_.local_addr;
  for (const NodeSlot* slot : present)
    if (slot->joined() && is_loopback(own)) own = slot->link->own_address();
  return own;
}

std::optional<std::int64_t> Leader::furthest_step() const { return std::max(furthest_step_, local_.furthest_step()); }

bool Leader::running() const {
  return local_.running() ||
         std::ranges::any_of(nodes_.slots(), [](const NodeSlot& slot) { return !slot.running.empty(); });
}

std::string Leader::running_names() const {
  std::string names = local_.running_names();
  for (const NodeSlot& slot : nodes_.slots())
    for (const int rank : slot.running)
      names += fmt::format("{}rank {} (on {})", names.empty() ? "" : ", ", rank, slot.request.host);
  return names;
}

WorkerEvents Leader::wait(std::optional<Deadline> deadline) {
  std::vector<pollfd> sources = nodes_.events();
  if (mirror_) sources.push_back({mirror_->fd(), POLLIN, 0});
  // Return in time for heartbeats, and to close unauthenticated connections.
  const auto beat = Deadline::after(signals_.empty() ? NodeLink::kBetweenBeats : std::chrono::seconds(0));
  WorkerEvents events = local_.wait(earlier(nodes_.next_poll(), earlier(deadline, beat)), sources);
  if (events.signal != 0) take_signal(events.signal, 0);
  if (mirror_)
    for (const auto& [name, value] : mirror_->changes()) nodes_.send_to_all(key_message(name, value));
  const bool joined = nodes_.admit();
  events.regroup |= joined && elastic();
  for (NodeSlot& slot : nodes_.slots())
    if (slot.joined()) receive(slot, events);
  events.signal = signals_.empty() ? 0 : signals_.front();
  if (!signals_.empty()) signals_.pop_front();
  return events;
}

void Leader::take_signal(int number, int node) {
  if (deduplicator_.is_new(number, node)) signals_.push_back(number);
}

void Leader::receive(NodeSlot& slot, WorkerEvents& events) {
  try {
    for (const json& message : slot.link->receive()) handle(slot, message, events);
  } catch (const MessageError& error) {
    slot.link->close(error.what());
  }
  slot.link->beat();
  if (slot.link->peer_is_silent()) slot.link->close_for_silence();
  if (!slot.link->open()) lose(slot, events);
}

void Leader::handle(NodeSlot& slot, const json& message, WorkerEvents& events) {
  const std::string kind = kind_of(message);
  if (kind == "signal") take_signal(signal_in(message), slot.request.node);
  if (kind == "leave") leave(slot, events);
  if (kind == "stopped")
    blame(slot,
          fmt::format("node {} ({}) heard nothing from this agent for {} s and stopped its workers", slot.request.node,
                      slot.request.host, NodeLink::kAgentSilence.count()),
          events);
  if (kind == "exit") {
    auto [exit, step] = exit_in(message);
    if (step >= 0) furthest_step_ = std::max(furthest_step_, std::optional(step));
    if (slot.running.erase(exit.rank) > 0) events.exits.push_back(std::move(exit));
  }
  if (kind == "key" && mirror_) {
    const auto [name, value] = entry_in(message);
    mirror_->put(name, value);
    for (NodeSlot& other : nodes_.slots())
      if (&other != &slot && other.joined()) other.link->send(key_message(name, value));
  }
}

/// Only an elastic run can lose a node. With a fixed number, agents forward the signal instead, which ends the run.
void Leader::leave(NodeSlot& slot, WorkerEvents& events) {
  if (!elastic()) throw MessageError("it asked to leave a run of a fixed number of nodes");
  events.regroup = true;
  if (!std::exchange(slot.leaving, true))
    log_(fmt::format("node {} ({}) leaves the run", slot.request.node, slot.request.host));
}

/// The attempt goes on without the node, or fails.
void Leader::blame(NodeSlot& slot, const std::string& why, WorkerEvents& events) {
  log_(why);
  events.regroup |= elastic();
  if (!elastic())
    for (const int rank : slot.running)
      events.exits.push_back({.rank = rank, .code = kPeerLost, .host = slot.request.host, .message = why});
}

/// Its workers end with its connection or their host. Those of a stopped agent run until it continues, or until they
/// miss the others; their attempt no longer counts.
void Leader::lose(NodeSlot& slot, WorkerEvents& events) {
  node_lost_ = true;
  blame(slot, fmt::format("lost node {} ({}): {}", slot.request.node, slot.request.host, slot.link->reason()), events);
  slot = {};
}

bool Leader::can_continue_without_node() {
  const auto deadline = Deadline::after(NodeLink::kAgentSilence + NodeLink::kBetweenBeats);
  while (elastic() && !node_lost_ && nodes_.present() > 1 && !deadline.passed()) wait_without_workers(deadline);
  return elastic() && node_lost_;
}

void Leader::send(int number) noexcept {
  nodes_.send_to_all(signal_message(number));
  local_.send(number);
}

void Leader::suspend() {
  nodes_.send_to_all(signal_message(SIGSTOP));
  for (NodeSlot& slot : nodes_.slots())
    if (slot.joined()) slot.link->pause();
  nodes_.flush();
  local_.suspend();
  nodes_.send_to_all(signal_message(SIGCONT));
}

void Leader::finish(int code, const std::string& why) {
  nodes_.send_to_all(finish_message(code, why));
  nodes_.flush();
}

}  // namespace gradring::train
