// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/process_group.h"
#include "train/config/train_config.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

/// Trains as one rank of the run that `place` describes, from opening the data to the last file. Rank 0 makes the run
/// directory, once all ranks have come and agree, and talks to the person on stdout; every rank keeps a log there.
/// `group` takes the ranks' group, so that it outlives an error: peers notice when it goes, and must not end before this
/// rank has said why.
///
/// Errors    as Trainer, open_dataset, make_compute and make_group; UsageError if the run directory is there already.
void train_rank(const TrainConfig& config, const WorkerEnvironment& place, std::unique_ptr<comm::ProcessGroup>& group);

/// Opens device and data as train_rank does, says what there is, and stops: it waits for nobody and writes nothing.
void dry_run(const TrainConfig& config, const WorkerEnvironment& place);

}  // namespace gradring::train
