// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "train/options/environment_variable.h"

namespace gradring::train {

/// Limits of a run, for options and for messages of other nodes alike.
constexpr int kMostNodes = 65536;
constexpr int kMostWorkersPerNode = 4096;
constexpr int kLargestWorld = 1 << 17;  // as many as readers of metrics accept (report/event_reader.h)
constexpr int kHighestPort = 65535;

/// The ranks of the workers of one node in one attempt.
struct NodeAssignment {
  int node = 0;
  int nodes = 1;
  int first_rank = 0;  ///< of this node; ranks count through the nodes in order
  int world_size = 1;
  int first_role_rank = 0;  ///< the same among the workers with this node's role
  int role_world_size = 1;
  int master_port = 0;
};

/// What a worker knows of its run, in the terms of torchrun. The launcher passes it in environment variables, so that
/// the same worker runs under `gradring launch` and torchrun. The default is a world of one.
struct WorkerEnvironment {
  int rank = 0;              ///< RANK, among all workers of the run
  int world_size = 1;        ///< WORLD_SIZE
  int local_rank = 0;        ///< LOCAL_RANK, among the workers of this node
  int local_world_size = 1;  ///< LOCAL_WORLD_SIZE
  int group_rank = 0;        ///< GROUP_RANK, of the node
  int group_world_size = 1;  ///< GROUP_WORLD_SIZE
  int role_rank = 0;         ///< ROLE_RANK, among the workers with this role
  int role_world_size = 1;   ///< ROLE_WORLD_SIZE
  std::string role_name = "default";

  /// MASTER_ADDR, else what the launcher says of rank 0's host: names or addresses, separated by commas. Empty if nothing
  /// says on which of several nodes it is; not used on one node.
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;         ///< MASTER_PORT
  int rendezvous_port = 0;         ///< GRADRING_RENDEZVOUS_PORT; 0: unset
  std::string master_source = {};  ///< for messages: the variable that master_addr derives from; empty: MASTER_ADDR
  std::string run_id = "none";     ///< TORCHELASTIC_RUN_ID
  int restart_count = 0;           ///< TORCHELASTIC_RESTART_COUNT
  int max_restarts = 0;            ///< TORCHELASTIC_MAX_RESTARTS
  bool use_agent_store = false;    ///< TORCHELASTIC_USE_AGENT_STORE: the launcher serves MASTER_PORT, rank 0 must not
  std::string error_file = {};     ///< TORCHELASTIC_ERROR_FILE: where to leave an error message; empty: nowhere
  /// GRADRING_STORE: the store in the run folder (0700) by which ranks find each other (FileStore), and on several
  /// nodes the ranks' token (worker_files.h); empty under other launchers.
  std::string store_path = {};
  std::string progress_file = {};  ///< GRADRING_PROGRESS_FILE: where to leave the step of the newest checkpoint
  std::string node_address = {};   ///< GRADRING_NODE_ADDRESS: numeric, for workers of other nodes; empty on one node
  std::string launcher = {};       ///< for messages: "torchrun", "mpirun"; empty without a launcher
  /// For messages: the variables that make this process a rank, to be unset if it is to run alone; none under
  /// `gradring launch`.
  std::vector<std::string> rank_variables = {};

  bool operator==(const WorkerEnvironment&) const = default;

  bool spans_nodes() const { return world_size != local_world_size; }
  /// Whether a launcher has started this process as a rank. If not, it may start ranks itself.
  bool is_launched() const { return !launcher.empty(); }

  /// The variables that the launcher sets for this worker, overriding any others. Empty paths are left out.
  Variables to_variables() const;

  /// Reads what to_variables wrote, or torchrun, mpirun, srun or a PyTorchJob (detect_environment). With nothing
  /// set, a world of one. With RANK and WORLD_SIZE alone, all ranks are assumed on this node, unless MASTER_ADDR names
  /// another address than localhost: then each is assumed on a node of its own.
  ///
  /// Errors    InvalidArgument if a number is invalid, a rank is outside its world, or one of RANK and WORLD_SIZE
  ///           (LOCAL_RANK and LOCAL_WORLD_SIZE, ...) is set without the other.
  static WorkerEnvironment from_environment(const VariableLookup& lookup);
};

/// What the launcher sets unless the user has: OMP_NUM_THREADS = the worker's share of `processors`, at least 1, and
/// TORCH_NCCL_ASYNC_ERROR_HANDLING = 1.
Variables default_variables(int local_world_size, int processors);

/// The environment of a worker as its launcher describes it; nothing if no known launcher started this process. Tries
/// in this order:
///
/// * RANK, WORLD_SIZE and the rest: gradring's launcher, torchrun, and ranks started by hand;
/// * OMPI_COMM_WORLD_* of Open MPI, or PMI_* of MPICH, Intel MPI and others that start by Hydra;
/// * a job step of Slurm, but not a batch script, which also has SLURM_PROCID, and not a step of one task;
/// * a pod of a PyTorchJob.
///
/// Without LOCAL_RANK, the second and third come first if RANK or WORLD_SIZE is missing, or WORLD_SIZE is the number of
/// their ranks: then a batch script has exported what it says of a rank to all of them.
///
/// Errors    InvalidArgument that names the invalid variable: "RANK=4 is outside WORLD_SIZE=4: ranks go from 0 to 3".
std::optional<WorkerEnvironment> detect_environment(const VariableLookup& lookup);

/// A pod of a Kubeflow PyTorchJob: RANK and WORLD_SIZE count pods, so this is the only worker of its node.
///
/// Errors    InvalidArgument, as above.
std::optional<WorkerEnvironment> detect_pytorch_job(const VariableLookup& lookup);

}  // namespace gradring::train
