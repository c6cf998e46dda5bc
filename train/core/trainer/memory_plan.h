// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/augment/augmentation.h"
#include "data/datasets/dataset.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "train/core/trainer/replica.h"
#include "train/records/metrics/memory_ledger.h"

namespace gradring::train {

/// The training whose memory is planned.
struct MemoryPlanSpec {
  ReplicaSpec replica;
  bool resident = false;        ///< the training set is kept on the device, and what is evaluated
  std::int64_t eval_batch = 0;  ///< samples per evaluation batch
  int world_size = 1;
  data::Augmentation augment = {};  ///< of the training set
  bool repeats_samples = false;     ///< as BatchLoaderSpec
  bool copies_evaluations = false;  ///< some evaluations copy their batches though `resident`
};

/// Where it would run. The backend plans layers; nothing else is done on the device.
struct MemoryPlanWorld {
  const kernels::Device& device;
  const kernels::KernelSet& kernels;
  nn::Backend& backend;
  const data::Dataset& train_set;
  const data::Dataset& evaluated;  ///< during the training: the validation set if there is one, else the test set
};

/// Memory of a rank's two programs, slots_for the training program, and bytes of the statistics that it gathers.
struct ProgramMemories {
  nn::ProgramMemory training;
  nn::ProgramMemory evaluation;
  int slots = 0;
  std::size_t statistics = 0;
  bool reads_f32 = false;  ///< of training: nn::Program::reads_f32
};

/// Plans the layers; allocates nothing.
///
/// Errors    InvalidArgument as of nn::Program; DeviceError if a library fails to plan.
ProgramMemories plan_programs(const MemoryPlanSpec& spec, const MemoryPlanWorld& world);

/// The same of each further device of --data-parallel. Its program is as the first one's.
MemoryTable plan_further_device(const MemoryPlanSpec& spec, const MemoryPlanWorld& world,
                                const ProgramMemories& programs);

/// The bytes that a rank's training will allocate, by class: its parts are constructed on a device that only counts
/// (kernels::DryRunDevice). A run compares it with its own count (Replica::memory).
MemoryTable plan_memory(const MemoryPlanSpec& spec, const MemoryPlanWorld& world, const ProgramMemories& programs);

}  // namespace gradring::train
