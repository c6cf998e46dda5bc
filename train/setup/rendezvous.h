// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "comm/process_group.h"
#include "comm/rendezvous/store.h"
#include "kernels/runtime/deadline.h"
#include "train/launch/private_folder.h"
#include "train/launch/run_folder.h"
#include "train/launch/worker_environment.h"
#include "train/setup/compute.h"

namespace gradring::train {

/// Where the ranks of a run find each other if their launcher lends them no folder (torchrun, ranks started by hand):
/// rank 0 makes one and leaves a link to it in the user's private folder, under a name that all derive from
/// TORCHELASTIC_RUN_ID and MASTER_PORT (RunLink); the others follow it. Both go with rank 0's object.
class RankRendezvous {
 public:
  /// Rank 0 returns at once; the others when rank 0 has come.
  ///
  /// Errors    comm::Timeout that names rank 0; DeviceError if the folder or the link cannot be made, if another user
  ///           has the private folder's name, or if a run that is alive has the same id and port.
  RankRendezvous(const WorkerEnvironment& place, Deadline deadline, const PrivateFolder& links = PrivateFolder(),
                 const std::filesystem::path& parent = temporary_folder());

  /// A folder that is there for all ranks, for a comm::FileStore.
  const std::filesystem::path& store() const { return store_; }

 private:
  std::filesystem::path store_;
  std::optional<RunFolder> folder_;  // rank 0's
  std::optional<RunLink> link_;      // to it; goes before it
};

/// How the ranks of a run are to be joined.
struct GroupSpec {
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  std::string comm = "auto";      ///< auto, nccl, shm, tcp
  bool allow_shared_gpu = false;  ///< several ranks on one GPU, for tests
};

/// The ranks of a run as one of them has them, behind where they met: GPUs tell each other there why they fail.
struct Ranks {
  std::unique_ptr<RankRendezvous> rendezvous;
  std::unique_ptr<comm::Store> store;
  std::unique_ptr<comm::ProcessGroup> group;
};

/// The ranks of this run. They find each other in the folder that their launcher lends (GRADRING_STORE), or else in a
/// RankRendezvous; a world of one finds itself. Blocks until all have come. `compute` is what this rank computes with,
/// and must outlive the group; null stands for a CPU.
///
/// Only tcp opens ports, on 127.0.0.1 or, where the ranks are on several nodes, on this one's address, and closes them
/// when all have come. On GPUs, NCCL carries the gradients; a lone rank does without, unless it is told to take it.
///
/// Errors    UsageError if `comm` moves another kind of memory than `compute` has; EnvironmentError for ranks on
///           several machines that have GPUs, or no launcher over all of them; DeviceError without NCCL, or if ranks
///           share a GPU and must not; comm::Timeout that names the missing ranks; comm::PeerLost.
Ranks make_group(const WorkerEnvironment& place, const GroupSpec& spec, const Compute* compute = nullptr);

}  // namespace gradring::train
