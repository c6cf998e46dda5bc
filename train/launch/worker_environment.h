// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gradring::train {

/// The value of an environment variable, or nothing if it is not set. Tests give a table, programs system_variable.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;
using Variables = std::vector<std::pair<std::string, std::string>>;

/// A VariableLookup over this process's own environment.
std::optional<std::string> system_variable(const std::string& name);

/// A worker's place in its run, in torchrun's words. It travels from launcher to worker as environment variables, so
/// that the same worker runs under `gradring launch` and under torchrun. The default is a world of one.
struct WorkerEnvironment {
  int rank = 0;              ///< RANK, of all workers of the run
  int world_size = 1;        ///< WORLD_SIZE
  int local_rank = 0;        ///< LOCAL_RANK, of the workers on this node
  int local_world_size = 1;  ///< LOCAL_WORLD_SIZE
  int group_rank = 0;        ///< GROUP_RANK, of the nodes
  int group_world_size = 1;  ///< GROUP_WORLD_SIZE
  int role_rank = 0;         ///< ROLE_RANK, of the workers with this role
  int role_world_size = 1;   ///< ROLE_WORLD_SIZE
  std::string role_name = "default";

  std::string master_addr = "127.0.0.1";  ///< for programs that meet over TCP; gradring does not, on one node
  int master_port = 29500;
  std::string run_id = "none";   ///< TORCHELASTIC_RUN_ID
  int restart_count = 0;         ///< TORCHELASTIC_RESTART_COUNT
  int max_restarts = 0;          ///< TORCHELASTIC_MAX_RESTARTS
  bool use_agent_store = false;  ///< TORCHELASTIC_USE_AGENT_STORE: the launcher serves MASTER_PORT, rank 0 must not
  std::string error_file = {};   ///< TORCHELASTIC_ERROR_FILE: where to leave a last message; empty if nobody reads it
  /// GRADRING_STORE: the run's folder, 0700, for the files by which ranks meet (FileStore); empty if none is lent.
  std::string store_path = {};
  std::string progress_file = {};  ///< GRADRING_PROGRESS_FILE: where to leave the step of the newest checkpoint
                                   ///< (progress_file.h); empty if nobody reads it
  /// GRADRING_NODE_ADDRESS: this node's, numeric, for workers of others; empty on one node.
  std::string node_address = {};
  std::string launcher = {};  ///< who started this worker, for people: "torchrun", "mpirun"; empty if it is alone

  bool operator==(const WorkerEnvironment&) const = default;

  /// What the launcher sets for this worker, whatever was set before. Empty paths are left out.
  Variables to_variables() const;

  /// Reads what to_variables wrote, or torchrun, mpirun, srun or a PyTorchJob, in this order. With nothing set, a world
  /// of one. Where RANK and WORLD_SIZE are all there is, all ranks are taken to be on this node.
  ///
  /// Errors    InvalidArgument if a number is none, a rank is outside its world, or one of RANK and WORLD_SIZE
  ///           (LOCAL_RANK and LOCAL_WORLD_SIZE, ...) is set without the other: "RANK=4 is outside WORLD_SIZE=4: ...".
  static WorkerEnvironment from_environment(const VariableLookup& lookup);
};

/// What the launcher sets only where the user has not: OMP_NUM_THREADS = the worker's share of `cores`, at least 1, and
/// TORCH_NCCL_ASYNC_ERROR_HANDLING = 1.
Variables default_variables(int local_world_size, int cores);

/// The cores that this process may run on.
int usable_cores();

}  // namespace gradring::train
