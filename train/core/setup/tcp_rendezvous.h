// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/rendezvous/store.h"
#include "train/launch/workers/worker_environment.h"
#include "train/options/environment_variable.h"

namespace gradring::train {

/// The rendezvous of ranks on several machines whose launcher provides no store: torchrun, mpirun, srun, PyTorchJob, or
/// ranks started by hand. Rank 0 serves a store over TCP (comm::TcpStoreServer); the others find it by what their own
/// environment says.

/// Where rank 0 serves the store.
struct StoreEndpoint {
  std::vector<std::string> hosts;  ///< names or numeric addresses of rank 0's host; one of them must be reachable
  int port = 0;

  /// "node2:29500"
  std::string to_string() const;
};

/// The hosts of MASTER_ADDR, or those that the launcher names. The port is GRADRING_RENDEZVOUS_PORT, else MASTER_PORT,
/// or one above it if torchrun's agent listens there itself (TORCHELASTIC_USE_AGENT_STORE).
///
/// Errors    EnvironmentError that names the variable to set, if rank 0's host is unknown, or there is no such port.
StoreEndpoint store_endpoint(const WorkerEnvironment& environment);

struct TcpRendezvous {
  std::unique_ptr<comm::Store> store;  ///< rank 0's serves the others: it must outlive their use of it
  std::string address;                 ///< numeric: where the other ranks reach this one
  std::string token;                   ///< by which the ranks authenticate each other (comm::TcpGroupOptions)
};

/// Rank 0 returns once a rank of another machine has connected, the others once rank 0 has accepted them. Ranks with
/// another `run_dir` are of another run.
///
/// Errors    EnvironmentError as store_endpoint; without a token (GRADRING_TOKEN, GRADRING_TOKEN_FILE), for a port in
///           use, if rank 0 belongs to another run or runs on another host than MASTER_ADDR says, or if another process has joined as this rank; comm::Timeout that
///           names rank 0; InvalidArgument for a token file that cannot be used.
TcpRendezvous join_over_tcp(const WorkerEnvironment& environment, std::chrono::nanoseconds timeout,
                            const VariableLookup& lookup = system_variable, const std::string& run_dir = "");

/// Whether no other process has joined as `rank` through this store.
bool claim_rank(comm::Store& store, int rank);
/// How long a rank waits for another store if that is not so: rank 0 of an earlier attempt may not have ended.
inline constexpr std::chrono::seconds kSameRankDelay(5);

}  // namespace gradring::train
