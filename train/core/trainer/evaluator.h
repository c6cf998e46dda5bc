// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/loader/normalize.h"
#include "nn/program/program.h"
#include "train/core/config/choices.h"
#include "train/core/trainer/averaged_statistics.h"
#include "train/core/trainer/evaluation.h"
#include "train/core/trainer/replica.h"
#include "train/core/trainer/resident_evaluation.h"
#include "train/core/trainer/trainer_world.h"
#include "train/records/metrics/run_events.h"

namespace gradring::train {

/// What one pass over a data set found.
struct ModelEvaluation {
  std::string_view split = kTestSplit;   ///< kTestSplit or kValidationSplit
  Evaluation weights{};                  ///< seconds: of both
  std::optional<Evaluation> averaged{};  ///< of the averaged weights (--ema), if any
  /// Both with test-time augmentation (--tta), if any; at the end of a run only.
  std::optional<Evaluation> weights_tta{};
  std::optional<Evaluation> averaged_tta{};
};

/// What a summary says of each class; `names`: in the order of the labels.
std::vector<ClassResult> class_results(std::span<const ClassCounts> classes, std::span<const std::string> names);

/// The event of an evaluation after `step` steps, in epoch `epoch`, which counts from 1.
EvalRecord eval_record(const ModelEvaluation& found, std::int64_t step, std::int64_t epoch, bool ends_epoch);

struct EvaluatorSpec {
  data::NormalizeSpec normalize = {};
  Tta tta{};                                ///< of the end
  bool resident = false;                    ///< what select() evaluates is kept on the device, if it fits there
  bool recorded = false;                    ///< as ResidentEvaluation::Parts
  std::int64_t micro_batch = 0, shard = 0;  ///< as AveragedStatistics::Parts
};

/// Evaluates a replica while it is trained. Collective, with the same results on every rank.
///
/// A validation set (--val-split) takes the place of the test set until the end, so that nothing is selected by the
/// test set.
///
/// Threads   the trainer's. World and replica must outlive it.
/// Errors    as evaluate.
class Evaluator {
 public:
  /// To be constructed after everything else that stays on the device.
  Evaluator(const TrainerWorld& world, Replica& replica, EvaluatorSpec spec);

  /// Evaluates what selects checkpoints: the validation set if there is one, else the test set.
  ModelEvaluation select();
  /// What the run reports at its end: `selected` if that was the test set, else an evaluation of the test set; with
  /// that of test-time augmentation.
  ModelEvaluation at_end(const ModelEvaluation& selected);

  /// What select() evaluates.
  const data::Dataset& selecting() const { return world_.validation_set ? *world_.validation_set : world_.test_set; }
  nn::ProgramMemory memory() const { return program_.memory(); }
  /// Of the averaged weights that were evaluated last.
  const AveragedStatistics& averaged_statistics() const { return statistics_; }

 private:
  std::unique_ptr<ResidentEvaluation> make_resident();
  ModelEvaluation run(std::string_view split, const data::Dataset& dataset);
  Evaluation run_averaged(const nn::Weights& weights, const data::Dataset& dataset, Tta tta = Tta::none);
  Evaluation run_with(const nn::Weights& weights, const data::Dataset& dataset, Tta tta = Tta::none);

  const TrainerWorld& world_;
  Replica& replica_;
  EvaluatorSpec spec_;
  AveragedStatistics statistics_;
  nn::Program program_;
  std::unique_ptr<ResidentEvaluation> resident_;  // of selecting(); null: that is copied batch by batch
};

}  // namespace gradring::train
