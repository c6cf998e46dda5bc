// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "comm/process_group.h"
#include "comm/rendezvous/store.h"
#include "kernels/base/deadline.h"
#include "train/core/setup/compute.h"
#include "train/launch/workers/private_folder.h"
#include "train/launch/workers/run_folder.h"
#include "train/launch/workers/worker_environment.h"

namespace gradring::train {

/// Values that all ranks of a run have in common, whatever their launcher says.
struct RunKey {
  std::string token = {};    ///< given_token()
  std::string run_dir = {};  ///< absolute; empty: none
};

/// The rendezvous of ranks of one machine whose launcher provides no store (torchrun, mpirun, srun): rank 0 creates a
/// folder and a link to it in the user's private folder (RunLink), under a name derived from TORCHELASTIC_RUN_ID, the
/// port (GRADRING_RENDEZVOUS_PORT, else MASTER_PORT), and the RunKey; the others follow the link. Rank 0's destructor
/// removes both.
class RankRendezvous {
 public:
  /// Rank 0 returns at once; the others block until rank 0 has joined.
  ///
  /// Errors    comm::Timeout that names rank 0; EnvironmentError if there is a rank 0 of another RunKey only, or if
  ///           another process has joined as this rank; DeviceError if the folder or the link cannot be created, if
  ///           another user owns the private folder's name, or if a running run has the same name.
  RankRendezvous(const WorkerEnvironment& environment, Deadline deadline, const RunKey& run = {},
                 const PrivateFolder& links = PrivateFolder(),
                 const std::filesystem::path& parent = temporary_folder());

  /// The store of all ranks. Where rank 0 has ended, a wait of the others throws comm::PeerLost.
  std::unique_ptr<comm::Store> open_store(std::chrono::nanoseconds timeout) const;
  /// Its folder.
  std::filesystem::path store() const { return path_ / "store"; }

 private:
  bool claims_rank() const;

  int rank_;
  std::filesystem::path path_;       // of rank 0's folder
  std::optional<RunFolder> folder_;  // rank 0's
  std::optional<RunLink> link_;      // to it; goes before it
};

/// How the ranks of a run communicate.
struct GroupSpec {
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  TransportKind comm{};
  bool allow_shared_gpu = false;  ///< several ranks on one GPU, for tests
  std::string program{};          ///< name, version and commit
  std::string run_dir{};          ///< as a user types it; ranks with another one are of another run
};

/// A rank's process group. On GPUs the store stays: ranks publish their errors there.
struct Ranks {
  std::unique_ptr<RankRendezvous> rendezvous;
  std::unique_ptr<comm::Store> store;
  std::unique_ptr<comm::ProcessGroup> group;
};

/// Advice for two ranks that differ because they are of two runs; empty under a launcher that separates its runs.
std::string advice_for_two_runs(const WorkerEnvironment& environment);

/// Checks that `comm` can transfer the gradients of `compute` (null: a CPU) between the ranks of this run.
///
/// Errors    UsageError.
void check_comm(const WorkerEnvironment& environment, TransportKind comm, const Compute* compute);

/// Joins the ranks of this run: through the launcher's store (GRADRING_STORE), else a RankRendezvous, or on several
/// machines a store that rank 0 serves (join_over_tcp). Blocks until all have joined. `compute` must outlive the group;
/// null: a CPU.
///
/// Only tcp opens ports, on 127.0.0.1 or, with several nodes, on this node's address, and closes them once all have
/// joined. On GPUs, rank 0 serves its store until the end. There, gradients go through NCCL, which a single rank needs
/// only if --comm names it; host values go through shared memory, or with several nodes through tcp.
///
/// Errors    as check_comm; as join_over_tcp; ReplicaError on a rank that is another
///           program than rank 0, has another world size, or would connect otherwise; DeviceError without NCCL, or if ranks share a GPU and must
///           not; comm::Timeout that names the missing ranks; comm::PeerLost.
Ranks make_group(const WorkerEnvironment& environment, const GroupSpec& spec, const Compute* compute = nullptr);

}  // namespace gradring::train
