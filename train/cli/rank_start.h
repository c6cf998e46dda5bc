// SPDX-License-Identifier: Apache-2.0
// The first steps of a rank, of `train` and of other commands that train.
#pragma once

#include <vector>

#include "comm/process_group.h"
#include "train/config/train_config.h"
#include "train/launch/worker_environment.h"
#include "train/setup/compute.h"
#include "train/setup/rendezvous.h"
#include "train/setup/start.h"
#include "train/trainer/trainer.h"

namespace gradring::train {

/// Opens a rank's device. While layers are planned, rank 0 of `ranks`, which is opened later, chooses for all.
///
/// Errors    as make_compute and threads_of_rank.
Compute prepare_compute(const TrainConfig& config, const WorkerEnvironment& place, const Ranks& ranks);

/// The devices of --data-parallel besides `first`, which names them in the log.
///
/// Errors    as step_sizes and make_further_devices.
std::vector<Compute> prepare_further(const TrainConfig& config, const WorkerEnvironment& place, Compute& first);

/// How the ranks of a training are connected (make_group).
GroupSpec group_spec(const TrainConfig& config);

/// Starts the trainer from rank 0's checkpoint, weights or seed. Collective. May add to the remarks of `start`.
///
/// Errors    as Trainer::resume and Trainer::begin_with.
void begin_training(Trainer& trainer, const TrainConfig& config, comm::ProcessGroup& group, Start& start);

}  // namespace gradring::train
