// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "nn/program/program.h"
#include "train/core/trainer/evaluate.h"
#include "train/core/trainer/replica.h"
#include "train/core/trainer/trainer_world.h"
#include "train/records/metrics/run_events.h"

namespace gradring::train {

/// What one pass over a data set found.
struct ModelEvaluation {
  std::string_view split = kTestSplit;   ///< kTestSplit or kValidationSplit
  Evaluation weights{};                  ///< seconds: of both
  std::optional<Evaluation> averaged{};  ///< of the averaged weights (--ema), if any
};

/// The event of an evaluation after `step` steps, in epoch `epoch`, which counts from 1.
EvalRecord eval_record(const ModelEvaluation& found, std::int64_t step, std::int64_t epoch, bool ends_epoch);

/// Evaluates a replica while it is trained. Collective, with the same results on every rank.
///
/// A validation set (--val-split) takes the place of the test set until the end, so that nothing is selected by the
/// test set.
///
/// Threads   the trainer's. World and replica must outlive it.
/// Errors    as evaluate.
class Evaluator {
 public:
  Evaluator(const TrainerWorld& world, Replica& replica);

  /// Evaluates what selects checkpoints: the validation set if there is one, else the test set.
  ModelEvaluation select();
  /// What the run reports at its end: `selected` if that was the test set, else an evaluation of the test set.
  ModelEvaluation at_end(const ModelEvaluation& selected);

  nn::ProgramMemory memory() const { return program_.memory(); }

 private:
  ModelEvaluation run(std::string_view split, const data::Dataset& dataset);
  Evaluation run_with(const nn::Weights& weights, const data::Dataset& dataset);

  const TrainerWorld& world_;
  Replica& replica_;
  nn::Program program_;
};

}  // namespace gradring::train
