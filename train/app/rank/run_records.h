// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#include "train/core/config/train_config.h"
#include "train/core/setup/compute.h"
#include "train/core/trainer/trainer.h"
#include "train/launch/workers/worker_environment.h"
#include "train/records/metrics/run_events.h"
#include "train/records/metrics/summary.h"

namespace gradring::train {

// What a run records of itself at its start and at its end.

/// The first event of a run in metrics.jsonl. `resolved` has no `auto` left.
RunHeader run_header(const TrainConfig& resolved, const Compute& compute, const Trainer& trainer,
                     const WorkerEnvironment& environment);

/// The last event of a run that finished.
EndRecord end_of(const Summary& summary);
/// The last event of a run that ended with `error` after `made`.
EndRecord end_of(const std::exception& error, const TrainingProgress& made);
/// summary.json of such a run.
UnfinishedRun unfinished_run(const std::exception& error, const TrainingProgress& made, const TrainConfig& resolved,
                             int world_size);

}  // namespace gradring::train
