// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "train/launch/attempt.h"
#include "train/launch/launcher.h"
#include "train/launch/nodes/node_link.h"
#include "train/launch/nodes/store_mirror.h"
#include "train/launch/worker_group.h"

namespace gradring::train {

/// The agent of a node other than 0: starts and signals its workers as the leader says, tells it how they end, and has no
/// policy of its own but one: without its leader it stops them.
class Follower {
 public:
  Follower(const LaunchOptions& options, NodeLink link, WorkerGroup& local, Say say);

  /// Returns the run's exit code; 161 if the leader is gone.
  ///
  /// Errors    InvalidArgument if the leader refuses this node.
  int to_the_end();

 private:
  void obey(const nlohmann::json& message);
  void report(const WorkerEvents& events);
  int without_leader();

  const LaunchOptions& options_;
  NodeLink link_;
  WorkerGroup& local_;
  const Say say_;
  std::optional<StoreMirror> mirror_;
  std::optional<int> code_;
};

}  // namespace gradring::train
