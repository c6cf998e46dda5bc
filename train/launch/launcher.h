// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "train/launch/logs/log_spec.h"
#include "train/launch/restart_policy.h"

namespace gradring::train {

struct NodeRange {
  int least = 1, most = 1;
};

enum class Rendezvous {
  by_address,  ///< MASTER_ADDR and MASTER_PORT are given (static)
  dynamic,     ///< they are chosen (c10d, --standalone)
};

/// What to run, how often, and what the workers are told about their run.
struct LaunchOptions {
  std::string program{};                 ///< a path, or a name looked up along PATH
  std::vector<std::string> arguments{};  ///< without the program's own name
  int nproc_per_node = 1;
  std::vector<std::string> devices{};  ///< the workers' CUDA_VISIBLE_DEVICES; empty: as it is
  bool virtual_local_rank = false;     ///< each worker has LOCAL_RANK 0 and the one of `devices` that is its own
  NodeRange nnodes{};
  int node_rank = 0;
  std::string role = "default";
  Rendezvous rendezvous = Rendezvous::by_address;
  std::string run_id = "none";
  std::string token{};       ///< what the agents of several nodes prove to know; empty: the run id alone
  std::string local_addr{};  ///< this node's address for the others; empty: found out
  std::chrono::milliseconds join_timeout = std::chrono::seconds(900);  ///< until enough nodes have come
  std::chrono::milliseconds last_call = std::chrono::seconds(30);      ///< for more of them, once there are enough
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
  RestartOptions restarts{};
  LogSpec logs{};
  std::chrono::milliseconds kill_grace = std::chrono::seconds(30);        ///< from SIGTERM to SIGKILL
  std::vector<int> handled_signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};  ///< that end the run in order
  std::string title = "gradring launch";  ///< begins every line that the launcher writes

  bool ends_run(int signal) const { return std::ranges::find(handled_signals, signal) != handled_signals.end(); }
};

/// Runs `nproc_per_node` copies of a program on this node, each as its own session, watches them, and returns when all
/// have ended. The first failure stops the others: SIGTERM, kill_grace, SIGKILL; then all start again while
/// `restarts` allows it. SIGINT is forwarded once; a second one kills. The others of `handled_signals` are
/// forwarded, and the workers have kill_grace to end; SIGUSR1 and SIGUSR2 are forwarded without ending the run, unless
/// listed. Output is inherited or goes where `logs` says; the launcher itself writes to stderr, and nothing if all goes well.
/// Opens no TCP port on one node. Nothing of the run outlives this call, nor the death of this process by any signal: no
/// worker, no zombie, no folder but that of the logs. README.md has the details.
///
/// Returns   0 if all workers returned 0; 130 after SIGINT, 131 after SIGQUIT, 143 after another signal; else what the
///           first failing worker of the last attempt came to: its exit code, 128 + n if signal n killed it, 127 if there is no such
///           program, 126 if it cannot be executed.
/// Threads   call it from the main thread of a process that has no other; the workers die with the calling thread.
/// Errors    InvalidArgument if the program is empty or nproc_per_node is not positive; DeviceError if the system has
///           no more processes or files to give.
/// Example   tests/train/launch/launcher_test.cpp
int launch(const LaunchOptions& options);

/// torch.multiprocessing.spawn's contract for `--nprocs N`: runs `program arguments...` as N ranks, returns as launch()
/// does. The calling process is none of the ranks. An empty program is the one that is running now.
int spawn_ranks(int nprocs, const std::vector<std::string>& arguments, const std::string& program = "");

/// The file of the running program, so that it can be started again as a worker.
std::string own_program();

}  // namespace gradring::train
