// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#include "train/config/train_config.h"
#include "train/launch/worker_environment.h"
#include "train/report/run_events.h"
#include "train/setup/compute.h"
#include "train/trace/run_trace.h"
#include "train/trainer/trainer.h"

namespace gradring::train {

/// The first event of a run in metrics.jsonl. `resolved` has no `auto` left.
RunHeader run_header(const TrainConfig& resolved, const Compute& compute, const Trainer& trainer,
                     const WorkerEnvironment& place);

/// The trace that the options ask for.
TraceSpec trace_spec(const TrainConfig& config);

/// The last event of a run that finished.
EndRecord end_of(const Summary& summary);
/// The last event of a run that ended with `error` after `made`.
EndRecord end_of(const std::exception& error, const TrainingProgress& made);

}  // namespace gradring::train
