// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "data/loader/normalize.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/trace_track.h"
#include "nn/program/program.h"
#include "train/core/config/choices.h"
#include "train/core/trainer/averaged_statistics.h"
#include "train/core/trainer/replica.h"
#include "train/core/trainer/tally.h"
#include "train/core/trainer/trainer_world.h"
#include "train/records/metrics/run_events.h"

namespace gradring::train {

struct EvaluationParts {
  kernels::Device& device;
  kernels::Stream& stream;
  const kernels::KernelSet& kernels;
  comm::ProcessGroup& group;
  nn::Program& program;  ///< in evaluation mode
  nn::Weights weights;
  const data::Dataset& dataset;
  data::NormalizeSpec normalize = {};
  Tta tta{};  ///< views whose logits are averaged
  /// Called with the logits of each batch, [samples, classes].
  std::function<void(std::span<const double> logits)> batch_done = [](std::span<const double>) {};
  kernels::TraceTrack* trace = nullptr;  ///< as BatchLoaderSpec
};

struct Evaluation {
  double accuracy = 0;
  double loss = 0;
  std::int64_t samples = 0;
  std::int64_t correct = 0;
  /// Whose class is among the Tally::kTop with the largest logits; empty if there are not more classes.
  std::optional<std::int64_t> correct_in_top{};
  std::vector<ClassCounts> classes{};
  double seconds = 0;  ///< wall time, where it was measured
};

/// Evaluates every sample of the data set exactly once, over all ranks. The same result on every rank.
///
/// Numerics  the loss of one view is summed in the device's order; of several views, in f64 from the mean of their logits.
/// Cost      a forward pass for each view.
/// Errors    comm::CommError, DeviceError.
Evaluation evaluate(const EvaluationParts& parts);

/// What one pass over a data set found.
struct ModelEvaluation {
  std::string_view split = kTestSplit;   ///< kTestSplit or kValidationSplit
  Evaluation weights{};                  ///< seconds: of both
  std::optional<Evaluation> averaged{};  ///< of the averaged weights (--ema), if any
  /// Both with test-time augmentation (--tta), if any; at the end of a run only.
  std::optional<Evaluation> weights_tta{};
  std::optional<Evaluation> averaged_tta{};
};

/// The share of samples whose class is among the Tally::kTop likeliest; empty if there are not more classes.
std::optional<double> top5_accuracy(const Evaluation& evaluation);

/// What a summary says of each class; `names`: in the order of the labels.
std::vector<ClassResult> class_results(std::span<const ClassCounts> classes, std::span<const std::string> names);

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
  /// `tta`: of the end.
  Evaluator(const TrainerWorld& world, Replica& replica, data::NormalizeSpec normalize, Tta tta);

  /// Evaluates what selects checkpoints: the validation set if there is one, else the test set.
  ModelEvaluation select();
  /// What the run reports at its end: `selected` if that was the test set, else an evaluation of the test set; with
  /// that of test-time augmentation.
  ModelEvaluation at_end(const ModelEvaluation& selected);

  nn::ProgramMemory memory() const { return program_.memory(); }
  /// Of the averaged weights that were evaluated last.
  const AveragedStatistics& averaged_statistics() const { return statistics_; }

 private:
  ModelEvaluation run(std::string_view split, const data::Dataset& dataset);
  Evaluation run_averaged(const nn::Weights& weights, const data::Dataset& dataset, Tta tta = Tta::none);
  Evaluation run_with(const nn::Weights& weights, const data::Dataset& dataset, Tta tta = Tta::none);

  const TrainerWorld& world_;
  Replica& replica_;
  data::NormalizeSpec normalize_;
  Tta tta_;
  AveragedStatistics statistics_;
  nn::Program program_;
};

}  // namespace gradring::train
