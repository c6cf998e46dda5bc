// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/process_group.h"
#include "comm/rendezvous/store.h"
#include "train/launch/worker_environment.h"
#include "train/setup/compute.h"
#include "train/setup/meeting_place.h"

namespace gradring::train {

/// How the ranks of a run are to be joined.
struct GroupSpec {
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  std::string comm = "auto";      ///< auto, nccl, shm, tcp
  bool allow_shared_gpu = false;  ///< several ranks on one GPU, for tests
};

/// The ranks of a run as one of them has them, behind where they met: GPUs tell each other there why they fail.
struct Ranks {
  std::unique_ptr<MeetingPlace> meeting;
  std::unique_ptr<comm::Store> store;
  std::unique_ptr<comm::ProcessGroup> group;
};

/// The ranks of this run. They find each other in the folder that their launcher lends (GRADRING_STORE), or else in a
/// MeetingPlace; a world of one finds itself. Blocks until all have come. `compute` is what this rank computes with, and
/// must outlive the group; null stands for a CPU.
///
/// Only tcp opens ports, on 127.0.0.1 or, where the ranks are on several nodes, on this one's address, and closes them when all
/// have come. On GPUs, NCCL carries the gradients; a lone rank
/// does without, unless it is told to take it.
///
/// Errors    UsageError if `comm` moves another kind of memory than `compute` has; EnvironmentError for ranks on several
///           machines that have GPUs, or no launcher over all of them; DeviceError without NCCL, or if ranks share a GPU and must not; comm::Timeout that names the missing
///           ranks; comm::PeerLost.
Ranks make_group(const WorkerEnvironment& place, const GroupSpec& spec, const Compute* compute = nullptr);

}  // namespace gradring::train
