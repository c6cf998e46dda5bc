// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/trace_track.h"
#include "nn/program/program.h"
#include "train/core/trainer/replica.h"
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
  /// Called when the program holds the logits of a batch of `count` samples.
  std::function<void(std::int64_t count)> batch_done = [](std::int64_t) {};
  kernels::TraceTrack* trace = nullptr;  ///< as BatchLoaderSpec
};

struct Evaluation {
  double accuracy = 0;
  double loss = 0;
  std::int64_t samples = 0;
  std::int64_t correct = 0;
  double seconds = 0;  ///< wall time, where it was measured
};

/// Evaluates every sample of the data set exactly once, over all ranks. The same result on every rank.
///
/// Errors    comm::CommError, DeviceError.
Evaluation evaluate(const EvaluationParts& parts);

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
