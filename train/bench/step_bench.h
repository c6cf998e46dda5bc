// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "data/loader/loader.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "kernels/simulated_gpu/cudart/simulated_gpu.h"
#include "nn/backend/backend.h"
#include "nn/program/program.h"
#include "train/bench/step_times.h"
#include "train/core/optim/optimizer.h"

namespace gradring::train::bench {

/// A few batches of a dataset's first samples, prepared once and reused: training without a loader.
class PreparedBatches {
 public:
  /// Errors    InvalidArgument if batch_size is below 1 or above the data set's size.
  PreparedBatches(const data::Dataset& dataset, kernels::Device& device, std::int64_t batch_size);

  const data::Batch& next() { return batches_[next_++ % batches_.size()]; }

 private:
  class Owner final : public data::BatchOwner {
   public:
    void give_back(data::BatchSlot&) noexcept override {}
  };

  Owner owner_;
  std::vector<data::BatchSlot> slots_;
  std::vector<data::Batch> batches_;
  std::size_t next_ = 0;
};

/// Resident memory of this process, program and libraries included.
struct ResidentMemory {
  std::size_t now_bytes = 0;
  std::size_t most_bytes = 0;  ///< peak
};

/// Errors    EnvironmentError if /proc/self/status does not state it.
ResidentMemory resident_memory();

struct StepBenchSpec {
  nn::ModelText model = "convnet";
  std::int64_t batch_size = 256;
  std::int64_t steps = 50;   ///< measured
  std::int64_t warmup = 10;  ///< not measured
  kernels::DType precision = kernels::DType::f32;
  nn::Checkpointing checkpointing;
  OptimizerSpec optimizer;
};

struct StepBenchParts {
  kernels::Device& device;
  nn::Backend& backend;
  const data::Dataset& dataset;
  const kernels::KernelSet* kernels = nullptr;           ///< of the device; null: the CPU's
  comm::ProcessGroup* group = nullptr;                   ///< ranks that train together; null: this rank alone
  const simulated_gpu::SimulatedGpu* counter = nullptr;  ///< the simulated GPU, to count one more step; else null
  bool lists = false;                                    ///< that step is counted instruction by instruction
};

struct StepReport {
  StepTimes::Table times;
  double loss = 0;                                  ///< of the last step
  nn::ProgramMemory program;                        ///< of the training program
  std::size_t segments = 1;                         ///< of the program; all but the last recompute activations
  std::size_t resident_before_bytes = 0;            ///< before the measured steps
  ResidentMemory resident;                          ///< after the measured steps
  std::vector<simulated_gpu::CountedWork> counted;  ///< of one more step, if a GPU counts
};

/// Times the trainer's TrainStep without a loader: batches of the dataset's first samples are ready in memory. Collective
/// if there is a group; then the reports are this rank's. Several specs run with interleaved steps, so that other load
/// affects all equally; the resident memory includes all.
///
/// On a GPU, the host enqueues up to eight steps of a single spec before it waits, and a measurement is the mean of these;
/// the parts of a step run asynchronously, so the table has none.
///
/// Errors    InvalidArgument for an unknown model, a batch larger than the data set, steps < 1, or unequal numbers of
///           steps; DeviceError.
std::vector<StepReport> bench_steps(std::span<const StepBenchSpec> specs, const StepBenchParts& parts);

}  // namespace gradring::train::bench
