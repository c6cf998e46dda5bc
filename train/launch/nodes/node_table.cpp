// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/node_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace gradring::train {
namespace {

using nlohmann::json;

std::string to_string(const NodeRange& nodes) {
  return nodes.least == nodes.most ? std::to_string(nodes.most) : fmt::format("{}:{}", nodes.least, nodes.most);
}

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

std::vector<int> NodeTable::fds() const {
  std::vector<int> fds = acceptor_.fds();
  for (const NodeLink& link : joining_) fds.push_back(link.fd());
  for (const NodeSlot& slot : slots_)
    if (slot.joined()) fds.push_back(slot.link->fd());
  return fds;
}

bool NodeTable::admit() {
  bool changed = false;
  joining_.splice(joining_.end(), acceptor_.admit());
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

std::vector<NodeAssignment> assign_ranks(std::span<const JoinRequest> requests, const std::string& master_addr,
                                         int master_port) {
  std::vector<NodeAssignment> assignments;
  std::map<std::string, int> in_role;
  int ranks = 0;
  for (const JoinRequest& request : requests) {
    assignments.push_back({.node = static_cast<int>(assignments.size()),
                           .nodes = static_cast<int>(requests.size()),
                           .first_rank = ranks,
                           .first_role_rank = in_role[request.role],
                           .master_addr = master_addr,
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

}  // namespace gradring::train
