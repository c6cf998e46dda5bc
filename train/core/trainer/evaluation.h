// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "data/loader/normalize.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/trace_track.h"
#include "nn/program/program.h"
#include "train/core/config/choices.h"
#include "train/core/trainer/tally.h"

namespace gradring::train {

/// What an evaluation of a model on a data set found.
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

/// The share of samples whose class is among the Tally::kTop likeliest; empty if there are not more classes.
std::optional<double> top5_accuracy(const Evaluation& evaluation);

/// The evaluation of all ranks, from what each found in its samples. Collective; the same result on every rank.
Evaluation over_all_ranks(comm::ProcessGroup& group, double loss_sum, Tally tally);

/// What evaluate works with. All of it must outlive the call.
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

/// Evaluates every sample of the data set exactly once, over all ranks. The same result on every rank.
///
/// Numerics  the loss of one view is summed in the device's order; of several views, in f64 from the mean of their logits.
/// Cost      a forward pass for each view; the host copies each batch to the device, waits for its logits and counts.
/// Errors    comm::CommError, DeviceError.
Evaluation evaluate(const EvaluationParts& parts);

}  // namespace gradring::train
