// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>

#include "train/launch/attempt.h"
#include "train/launch/launcher.h"
#include "train/launch/nodes/roster.h"
#include "train/launch/nodes/signal_echoes.h"
#include "train/launch/nodes/store_mirror.h"
#include "train/launch/worker_group.h"

namespace gradring::train {

/// The workers of all nodes, as the policy of the leading node sees them: one group, whose events come from here and from
/// links. So the first failure stops the workers everywhere, and one budget of restarts holds for the whole run.
///
/// A run of MIN:MAX nodes starts with as many as have come at the last call, and starts again in a world of another size
/// when one comes, asks to go, or is lost. One of a fixed number waits for all.
class Leader final : public Workers {
 public:
  Leader(const LaunchOptions& options, Doorway doorway, WorkerGroup& local, Say say);

  /// Waits until enough nodes are here, then starts their workers and ours.
  ///
  /// Errors    StartInterrupted; DeviceError that names the nodes that have not come within the join timeout.
  void start(int attempt) override;
  bool running() const override;
  int world_size() const override { return world_size_; }
  std::string running_names() const override;
  WorkerEvents wait(std::optional<Deadline> deadline) override;
  void send(int number) noexcept override;
  void suspend() override;
  std::optional<std::int64_t> furthest_step() const override;
  bool can_go_on_without_a_node() override;

  /// Tells all nodes that the run is over.
  void finish(int code);

 private:
  bool elastic() const { return options_.nnodes.least < options_.nnodes.most; }
  bool enough(const Deadline& last_call) const;
  void wait_for_nodes();
  void let_go();
  void wait_a_moment(const Deadline& deadline);
  void place_workers(int attempt);
  void hear(Seat& seat, WorkerEvents& events);
  void act(Seat& seat, const nlohmann::json& message, WorkerEvents& events);
  void lose(Seat& seat, WorkerEvents& events);
  void take_signal(int number, int node);
  void share_keys();

  const LaunchOptions& options_;
  WorkerGroup& local_;
  const Say say_;
  Roster roster_;
  SignalEchoes echoes_;
  std::deque<int> signals_;  ///< that have come, to any node, and that the policy has not heard of yet
  std::optional<StoreMirror> mirror_;
  std::optional<std::int64_t> furthest_step_;  ///< of other nodes, and of this one's earlier attempts
  int world_size_ = 0;
  bool node_lost_ = false;  ///< since the last start
};

}  // namespace gradring::train
