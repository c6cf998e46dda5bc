// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "train/config/train_config.h"
#include "train/launch/worker_environment.h"
#include "train/setup/compute.h"
#include "train/setup/make_group.h"
#include "train/trainer/run_requests.h"

namespace gradring::train {

/// What a rank keeps to its very end, and beyond an error: peers notice when its group goes, and must not end before it has
/// said why. The group's memory lies on the device.
struct RankKeeps {
  Compute compute;
  Ranks ranks;
  std::filesystem::path run_dir;  ///< rank 0's, as a user types it; empty until it is open
};

/// Trains as one rank of the run that `place` describes, from opening the data to the last file. Rank 0 makes the run
/// directory, once all ranks have come and agree, and talks to the person on stdout; every rank keeps a log there.
/// `keeps` takes what must outlive an error; `requests` is asked between steps. A run that has finished before is not trained
/// on: rank 0 says so, and no file changes.
///
/// Errors    as Trainer, open_dataset, make_compute, make_group and RunOutput.
void train_rank(const TrainConfig& config, const WorkerEnvironment& place, RunRequests& requests, RankKeeps& keeps);

/// Opens device and data as train_rank does, says what there is, and stops: it waits for nobody and writes nothing.
void dry_run(const TrainConfig& config, const WorkerEnvironment& place);

}  // namespace gradring::train
