// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/launch/logs/log_spec.h"

namespace gradring::train {

struct NodeRange {
  int least = 1, most = 1;

  bool elastic() const { return least < most; }
};

enum class Rendezvous {
  by_address,  ///< MASTER_ADDR and MASTER_PORT are given (static)
  dynamic,     ///< the launcher chooses them (c10d, --standalone)
};

struct RestartOptions {
  int most = 0;                                                       ///< --max-restarts
  std::chrono::milliseconds first_backoff = std::chrono::seconds(1);  ///< --backoff FIRST..LONGEST
  std::chrono::milliseconds longest_backoff = std::chrono::seconds(30);
  std::optional<std::int64_t> min_progress_steps{};  ///< unset: 1 if workers report progress; 0: no progress required
  std::vector<int> final_codes{};                    ///< exit codes after which a restart is pointless
};

/// What to run, how often, and what the workers are told about their run.
struct LaunchOptions {
  std::string program{};                 ///< a path, or a name looked up in PATH
  std::vector<std::string> arguments{};  ///< without the program name
  int nproc_per_node = 1;
  std::vector<std::string> devices{};  ///< CUDA_VISIBLE_DEVICES of the workers; empty: inherited
  bool virtual_local_rank = false;     ///< each worker has LOCAL_RANK 0 and sees only its own device
  NodeRange nnodes{};
  int node_rank = 0;
  std::string role = "default";
  Rendezvous rendezvous = Rendezvous::by_address;
  std::string run_id = "none";
  std::string token{};       ///< shared by the agents of all nodes; empty: the leader generates one for this host
  std::string local_addr{};  ///< name or address of this node for other nodes; empty: detected
  std::chrono::milliseconds join_timeout = std::chrono::seconds(900);  ///< until the minimum number of nodes joined
  std::chrono::milliseconds last_call = std::chrono::seconds(30);      ///< for more nodes once the minimum is reached
  std::string master_addr = "127.0.0.1";
  int master_port = 0;            ///< 0, on one node: a free one in each attempt
  std::string listen{};           ///< where node 0 of several listens; empty: at all addresses of its host
  std::optional<bool> is_host{};  ///< dynamic: whether this agent may lead; unset: if master_addr is this host
  RestartOptions restarts{};
  LogSpec logs{};
  std::chrono::milliseconds kill_grace = std::chrono::seconds(30);        ///< from SIGTERM to SIGKILL
  std::vector<int> handled_signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};  ///< end the run gracefully
  std::string title = "gradring launch";                                  ///< prefix of each line of the launcher

  bool ends_run(int signal) const { return std::ranges::find(handled_signals, signal) != handled_signals.end(); }
};

}  // namespace gradring::train
