// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "train/launch/nodes/message.h"
#include "train/launch/nodes/rendezvous.h"

namespace gradring::train {

/// One node of the run, as the leader knows it.
struct NodeSlot {
  JoinRequest request{};
  std::optional<NodeLink> link{};  ///< unset: the leader's own slot, or a free one
  std::set<int> running{};         ///< ranks that were started and have not reported their end
  bool leaving = false;            ///< it asked to leave

  bool joined() const { return link.has_value(); }
};

/// The nodes of a run, the acceptor, and authenticated connections that have not sent their join request yet.
class NodeTable {
 public:
  NodeTable(Acceptor acceptor, const JoinRequest& own);

  /// By node number; the first is the leader's.
  std::vector<NodeSlot>& slots() { return slots_; }
  const std::vector<NodeSlot>& slots() const { return slots_; }
  /// The number of nodes present, including the leader.
  int present() const;
  /// "node 1, node 3"
  std::string missing() const;
  /// The descriptors to poll for reading.
  std::vector<int> fds() const;
  /// When to call admit() at the latest, if ever.
  const std::optional<Deadline>& next_poll() const { return acceptor_.next_poll(); }
  /// Accepts nodes, and refuses unsuitable ones with a reason. Returns whether a node joined.
  bool admit();
  void send_to_all(const nlohmann::json& message);

 private:
  bool join(NodeLink link, JoinRequest request);
  std::int64_t total_workers() const;
  NodeSlot* free_slot();

  JoinRequest own_;
  Acceptor acceptor_;
  std::list<NodeLink> joining_;
  std::vector<NodeSlot> slots_;
};

/// Assigns ranks to all nodes in the order of their numbers: prefix sums of their workers, and the same within each
/// role. Nodes may have different numbers of workers.
std::vector<NodeAssignment> assign_ranks(std::span<const JoinRequest> requests, const std::string& master_addr,
                                         int master_port);

}  // namespace gradring::train
