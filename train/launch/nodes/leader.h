// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <optional>
#include <set>
#include <vector>

#include "train/launch/attempt.h"
#include "train/launch/launcher.h"
#include "train/launch/nodes/meeting.h"
#include "train/launch/nodes/message.h"
#include "train/launch/nodes/store_mirror.h"
#include "train/launch/worker_group.h"

namespace gradring::train {

/// The workers of all nodes, as the policy of node 0 sees them: one group, whose events come from here and from links.
/// So the first failure stops the workers everywhere, and one budget of restarts holds for the whole run.
class Leader final : public Workers {
 public:
  /// Listens for the other nodes.
  Leader(const LaunchOptions& options, WorkerGroup& local, Say say);

  /// Waits until all nodes are here, then starts their workers and ours.
  ///
  /// Errors    StartInterrupted; DeviceError that names the nodes that have not come within the join timeout.
  void start(int attempt) override;
  bool running() const override;
  std::string running_names() const override;
  WorkerEvents wait(std::optional<Deadline> deadline) override;
  void send(int number) noexcept override;
  void suspend() override;
  int world_size() const override { return world_size_; }
  std::optional<std::int64_t> furthest_step() const override { return furthest_step_; }

  /// Tells all nodes that the run is over.
  void finish(int code);

 private:
  struct Seat {
    NodeOffer offer{};
    std::optional<NodeLink> link{};
    std::set<int> running{};  ///< ranks
  };

  void wait_for_nodes();
  std::string missing_nodes() const;
  std::vector<int> fds() const;
  void tell_all(const nlohmann::json& message);
  void admit();
  void seat(NodeLink link, const NodeOffer& offer);
  void hear(Seat& seat, WorkerEvents& events);
  void act(Seat& seat, const nlohmann::json& message, WorkerEvents& events);
  void lose(Seat& seat, WorkerEvents& events);
  void share_keys();

  const LaunchOptions& options_;
  WorkerGroup& local_;
  const Say say_;
  Doorway doorway_;
  std::list<NodeLink> newcomers_;  ///< proven, but have not said yet which node they are
  std::vector<Seat> seats_;        ///< by node; that of node 0 has no link
  std::optional<StoreMirror> mirror_;
  std::optional<std::int64_t> furthest_step_;
  int world_size_ = 0;
};

}  // namespace gradring::train
