// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <gradring/dataset.h>
#include <gradring/model.h>
#include <gradring/options.h>

namespace gradring {
inline namespace v1 {

/// A step of the optimizer. Steps and epochs count from 1.
struct StepReport {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  double loss = 0;  ///< mean over the samples of all ranks, before the update
  double learning_rate = 0;
  double gradient_norm = 0;  ///< L2, of the mean gradient, before clipping
  std::int64_t samples = 0;  ///< of all ranks
  double seconds = 0;
  bool skipped = false;  ///< no weight was changed, because a gradient was not finite
};

/// A pass over the test set, or over the validation set (option val-split), at the end of an epoch or within it
/// (option eval-every).
struct EvaluationReport {
  std::int64_t step = 0;  ///< the last before it
  std::int64_t epoch = 0;
  bool ends_epoch = true;
  bool on_validation_set = false;
  double accuracy = 0;  ///< 0 .. 1
  double loss = 0;      ///< mean over the samples
  std::int64_t samples = 0;
};

/// Functions that fit() calls on rank 0, in order, while it trains; any may be empty. What they throw ends the training.
///
/// Threads   never two at once; that of rank 0, which is not the caller's if several ranks are threads.
struct Observer {
  std::function<void(const StepReport&)> step;
  std::function<void(const EvaluationReport&)> evaluation;
  std::function<void(const std::string&)> remark;  ///< messages for a person, such as changed options of a resumed run
};

/// A finished training; the same on all ranks, but for `rank`, `run_dir` and the paths within.
struct Result {
  double accuracy = 0;    ///< on the test set, 0 .. 1
  double loss = 0;        ///< on the test set, mean
  double train_loss = 0;  ///< mean over the samples of the last epoch, each before its step's update;
                          ///< NaN if no step of it had a finite one
  std::int64_t steps = 0;
  double seconds = 0;  ///< of training, without evaluation and start-up
  double samples_per_second = 0;
  int ranks = 1;
  int rank = 0;                ///< of this process; 0 if the ranks are threads
  std::string run_dir;         ///< with metrics.jsonl, checkpoints/ and logs/, which the commands of `gradring` read
  std::string checkpoint;      ///< of the last step
  std::string weights_sha256;  ///< of the weights: f32 little-endian, in state_dict order and PyTorch's layout
};

/// Trains a model, as `gradring train` does, on one or more ranks:
///
/// * started by `gradring launch`, torchrun, mpirun or srun, the process is one rank of the run, and the option nprocs
///   is not used. It takes signals as `gradring train` does;
/// * otherwise the option nprocs (1 by default) is the number of ranks, which are threads of this process.
///
/// The run directory is that of the option run-dir, or runs/<data set>-<model>-<time>. With the option resume it goes on
/// from a checkpoint.
///
/// Threads   call it from one thread of a process at a time.
/// Errors    Error.
/// Example   docs/cpp_api/spirals.cpp
Result fit(const Model& model, const Dataset& train_set, const Dataset& test_set, const Options& options = {},
           const Observer& observer = {});

}  // namespace v1
}  // namespace gradring
