// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "train/launch/nodes/message.h"
#include "train/launch/nodes/rendezvous.h"
#include "train/launch/nodes/store_mirror.h"
#include "train/launch/workers/attempt.h"
#include "train/launch/workers/launch_options.h"
#include "train/launch/workers/worker_group.h"

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
  /// Where nodes join.
  std::string where() const { return acceptor_.where(); }
  /// What to poll for.
  std::vector<pollfd> events() const;
  /// When to call admit() at the latest, if ever.
  const std::optional<Deadline>& next_poll() const { return acceptor_.next_poll(); }
  /// Accepts nodes, and refuses unsuitable ones with a reason. Returns whether a node joined.
  bool admit();
  /// Why the last unsuitable node was refused; empty if none was.
  const std::string& last_refusal() const { return last_refusal_; }
  void send_to_all(const nlohmann::json& message);
  /// Waits until all have taken what was sent (NodeLink::flush).
  void flush();

 private:
  bool join(NodeLink link, JoinRequest request);
  std::int64_t total_workers() const;
  NodeSlot* free_slot();

  JoinRequest own_;
  Acceptor acceptor_;
  std::list<NodeLink> joining_;
  std::vector<NodeSlot> slots_;
  std::string last_refusal_;
};

/// Assigns ranks to all nodes in the order of their numbers: prefix sums of their workers, and the same within each
/// role. Nodes may have different numbers of workers.
std::vector<NodeAssignment> assign_ranks(std::span<const JoinRequest> requests, int master_port);

/// One Ctrl-C may reach the agents of all nodes, as under srun or in one terminal. It must not count as two, the second
/// of which kills: a signal that another agent received a moment ago, and this one did not, is the same one.
class SignalDeduplicator {
 public:
  using Clock = std::chrono::steady_clock;

  /// Whether the signal that an agent received is a new one.
  bool is_new(int number, int node, Clock::time_point now = Clock::now());

 private:
  struct Received {
    Clock::time_point when;
    std::set<int> nodes;  ///< that received it
  };
  std::map<int, Received> latest_;  ///< by signal number
};

/// The workers of all nodes as one group, for the policy on the leading node. So the first failure stops the workers
/// everywhere, and one budget of restarts holds for the whole run.
///
/// A run of MIN:MAX nodes starts with those present at the last-call timeout, and restarts in a world of another size
/// when one joins, asks to leave, or is lost. A run of a fixed number waits for all.
class Leader final : public Workers {
 public:
  Leader(const LaunchOptions& options, Acceptor acceptor, WorkerGroup& local, Logger log);

  /// Waits until enough nodes have joined, then starts their workers and the local ones.
  ///
  /// Errors    StartInterrupted; DeviceError that names the nodes that did not join within the join timeout.
  void start(int attempt) override;
  bool running() const override;
  int world_size() const override { return world_size_; }
  std::string running_names() const override;
  WorkerEvents wait(std::optional<Deadline> deadline) override;
  void send(int number) noexcept override;
  void suspend() override;
  std::optional<std::int64_t> furthest_step() const override;
  bool can_continue_without_node() override;

  /// Tells all nodes the exit code of the run, and why if the leader gives up.
  void finish(int code, const std::string& why = "");

 private:
  bool elastic() const { return options_.nnodes.elastic(); }
  bool enough(const Deadline& last_call) const;
  void wait_for_nodes();
  void release_leaving();
  void wait_without_workers(const Deadline& deadline);
  void assign_workers(int attempt);
  std::string address(const std::vector<NodeSlot*>& present) const;
  void receive(NodeSlot& slot, WorkerEvents& events);
  void handle(NodeSlot& slot, const nlohmann::json& message, WorkerEvents& events);
  void leave(NodeSlot& slot, WorkerEvents& events);
  void blame(NodeSlot& slot, const std::string& why, WorkerEvents& events);
  void lose(NodeSlot& slot, WorkerEvents& events);
  void take_signal(int number, int node);

  const LaunchOptions& options_;
  WorkerGroup& local_;
  const Logger log_;
  NodeTable nodes_;
  SignalDeduplicator deduplicator_;
  std::deque<int> signals_;  ///< received by any node, and not yet returned by wait()
  std::optional<StoreMirror> mirror_;
  std::optional<std::int64_t> furthest_step_;  ///< of other nodes, and of this node's earlier attempts
  int world_size_ = 0;
  bool node_lost_ = false;  ///< since the last start
};

}  // namespace gradring::train
