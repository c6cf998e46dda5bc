// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/loader/sampler.h"
#include "train/core/config/train_config.h"
#include "train/core/trainer/evaluator.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/replica.h"
#include "train/core/trainer/trainer_world.h"
#include "train/core/trainer/training_progress.h"
#include "train/records/metrics/run_events.h"
#include "train/records/metrics/summary.h"

namespace gradring::train {

/// What a trainer's header and summary are made of.
struct RunFacts {
  const TrainConfig& config;
  const TrainerWorld& world;
  const StepSizes& sizes;
  const data::StepSampler& sampler;
  const Replica& replica;
  const Evaluator& evaluator;
};

/// Results of a run that has ended.
struct RunResult {
  const ModelEvaluation& selected;  ///< the last one that selects checkpoints
  const ModelEvaluation& at_end;    ///< on the test set
  const Sha256& weights;
};

/// Fills in what the trainer knows: model, precision, sizes, memory, and where it resumes.
void describe(RunHeader& header, const RunFacts& facts, const TrainingProgress& progress);

Summary summary_of(const RunFacts& facts, const TrainingProgress& progress, const RunResult& result);

}  // namespace gradring::train
