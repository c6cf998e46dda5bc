// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "data/datasets/dataset.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "nn/program/program.h"
#include "train/bench/resident_memory.h"
#include "train/bench/step_times.h"
#include "train/optim/optimizer.h"

namespace gradring::train::bench {

struct StepBenchSpec {
  std::string model = "convnet";
  std::int64_t batch_size = 256;
  std::int64_t steps = 50;   ///< that count
  std::int64_t warmup = 10;  ///< before them
  kernels::DType precision = kernels::DType::f32;
  nn::Checkpointing checkpointing;
  OptimizerSpec optimizer;
};

struct StepBenchParts {
  kernels::Device& device;
  nn::Backend& backend;
  const data::Dataset& dataset;
};

struct StepReport {
  StepTimes::Table times;
  double loss = 0;                        ///< of the last step: that it has learned
  nn::ProgramMemory program;              ///< that it holds
  std::size_t segments = 1;               ///< of the program; activations are computed twice in all but the last one
  std::size_t resident_before_bytes = 0;  ///< before the steps that count
  ResidentMemory resident;                ///< after them
};

/// Times training steps of one rank, the trainer's own TrainStep, without a loader in the way: its batches are the data set's
/// first samples, ready in memory.
///
/// Errors    InvalidArgument for an unknown model, a batch larger than the data set, no steps; DeviceError.
StepReport bench_steps(const StepBenchSpec& spec, const StepBenchParts& parts);

/// The same of two specs, a step of each in turn, so that whatever else the machine does hits both alike. What is resident then
/// holds both.
std::pair<StepReport, StepReport> bench_steps_in_turns(const StepBenchSpec& one, const StepBenchSpec& other,
                                                       const StepBenchParts& parts);

}  // namespace gradring::train::bench
