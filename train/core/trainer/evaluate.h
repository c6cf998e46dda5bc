// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/trace_track.h"
#include "nn/program/program.h"

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

}  // namespace gradring::train
