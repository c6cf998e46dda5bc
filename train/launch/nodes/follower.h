// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "kernels/base/deadline.h"
#include "train/launch/nodes/message.h"
#include "train/launch/nodes/node_link.h"
#include "train/launch/nodes/store_mirror.h"
#include "train/launch/workers/attempt.h"
#include "train/launch/workers/launch_options.h"
#include "train/launch/workers/worker_group.h"

namespace gradring::train {

/// The agent of a node other than the leading one: starts and signals its workers as the leader says and reports how
/// they end. Its only own policy is to stop them when it loses the leader.
class Follower {
 public:
  Follower(const LaunchOptions& options, NodeLink link, WorkerGroup& local, Logger log);

  /// Returns the exit code of the run; 161 if the leader is lost; nothing if this agent did not run for so long that
  /// the leader gave this node up: it may join again.
  ///
  /// Errors    InvalidArgument if the leader refuses this node.
  std::optional<int> run();

 private:
  using Steady = std::chrono::steady_clock;

  /// The leader's host responds, the leader does not: it is frozen, and may continue.
  struct Silence {
    std::optional<Deadline> kill;  ///< of workers that have not stopped
    Deadline give_up;
  };

  void report(const WorkerEvents& events);
  void receive();
  void obey(const nlohmann::json& message);
  void start(const StartMessage& start);
  /// The address by which this node reaches the leader.
  std::string address(const std::string& leader_address) const;
  void watch_leader();
  void stop_for_silence();
  void stop();
  void stop_without_leader();

  const LaunchOptions& options_;
  const JoinRequest request_ = join_request_of(options_);
  NodeLink link_;
  WorkerGroup& local_;
  const Logger log_;
  std::optional<StoreMirror> mirror_;
  std::optional<Silence> silence_;
  std::optional<int> code_;
};

}  // namespace gradring::train
