// SPDX-License-Identifier: Apache-2.0
// The first steps of a rank, of `train` and of other commands that train.
#pragma once

#include <vector>

#include "comm/process_group.h"
#include "train/core/config/train_config.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/datasets.h"
#include "train/core/setup/rank_agreements.h"
#include "train/core/setup/rendezvous.h"
#include "train/core/setup/start.h"
#include "train/core/trainer/trainer.h"
#include "train/launch/workers/worker_environment.h"

namespace gradring::train {

/// Opens a rank's device. While layers are planned, rank 0 of `ranks`, which is opened later, chooses for all.
///
/// Errors    as make_compute and threads_of_rank.
Compute prepare_compute(const TrainConfig& config, const WorkerEnvironment& environment, const Ranks& ranks);

/// The devices of --data-parallel besides `first`, which names them in the log.
///
/// Errors    as step_sizes and make_further_devices.
std::vector<Compute> prepare_further(const TrainConfig& config, const WorkerEnvironment& environment, Compute& first);

/// How the ranks of a training are connected (make_group).
GroupSpec group_spec(const TrainConfig& config);

/// What a rank finds on its own disk, and the others on theirs.
struct OwnFiles {
  std::vector<Agreement> data{};  ///< same_data()
  std::int64_t newest_step = -1;  ///< of the checkpoints in --run-dir, where the run resumes from the newest
};

/// Reads them; before ranks wait for each other. Nothing for a single rank.
OwnFiles own_files(const TrainConfig& config, const WorkerEnvironment& environment, const Datasets& sets);

/// Checks that all ranks train with the same options, code and data, and that rank 0 has the newest checkpoint.
/// Collective.
///
/// Returns   remarks.
/// Errors    ReplicaError that names the ranks and what differs.
std::vector<std::string> check_ranks_agree(comm::ProcessGroup& group, const TrainConfig& config, const Compute& compute,
                                           const OwnFiles& own);

/// Starts the trainer from rank 0's checkpoint, weights or seed. Collective. May add to the remarks of `start`.
///
/// Errors    as Trainer::resume and Trainer::begin_with.
void begin_training(Trainer& trainer, const TrainConfig& config, comm::ProcessGroup& group, Start& start);

}  // namespace gradring::train
