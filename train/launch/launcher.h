// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/launch/logs/log_spec.h"

namespace gradring::train {

struct NodeRange {
  int least = 1, most = 1;
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

/// Runs `nproc_per_node` copies of a program on this node, each in its own session, and returns when all have ended.
/// The first failure stops the others (SIGTERM, kill_grace, SIGKILL), then all restart while `restarts` allows it.
/// SIGINT is forwarded once, a second one kills. The other `handled_signals` are forwarded, SIGQUIT as SIGTERM, and
/// give the workers kill_grace to end. SIGUSR1 and SIGUSR2 are forwarded without ending the run, unless listed. On one
/// node no TCP port is opened. No process and no folder but the logs outlives this call or the death of this process.
///
/// Returns   0 if all workers returned 0, but 3 if a teed log could not be written; 130 after SIGINT, 131 after
///           SIGQUIT, 143 after another signal; else the code of the first failing worker of the last attempt: its exit
///           code, 128 + n if signal n killed it, 127 if the program does not exist, 126 if it cannot be executed.
/// Threads   call it from the main thread of a single-threaded process; the workers die with the calling thread.
/// Errors    InvalidArgument if the program is empty or nproc_per_node is not positive; DeviceError if the system runs
///           out of processes or files.
/// Example   tests/train/launch/launcher_test.cpp
int launch(const LaunchOptions& options);

/// Contract of torch.multiprocessing.spawn, for `--nprocs N`: runs `program arguments...` as N ranks and returns as
/// launch() does. The calling process is not a rank. An empty program means the running one.
int spawn_ranks(int nprocs, const std::vector<std::string>& arguments, const std::string& program = "");

/// The file of the running program, to start it again as a worker.
std::string own_program();

/// `gradring launch args...`. Returns the exit code: launch()'s, 2 for an invalid command line, 3 if the machine cannot
/// start workers. Writes errors to stderr.
int launch_main(std::span<const std::string> args);

}  // namespace gradring::train
