// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/datasets/dataset.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "train/memory/memory_ledger.h"
#include "train/trainer/replica.h"

namespace gradring::train {

/// What a rank's memory is planned for.
struct MemoryPlanSpec {
  ReplicaSpec replica;
  bool resident = false;        ///< the training set lies on the device
  std::int64_t eval_batch = 0;  ///< samples that evaluation takes at once
  int world_size = 1;
};

/// Where. The backend plans layers, and nothing else happens on the device.
struct MemoryPlanPlace {
  const kernels::Device& device;
  const kernels::KernelSet& kernels;
  nn::Backend& backend;
  const data::Dataset& train_set;
};

/// What a rank's two programs hold, and for how many buckets the training one needs places at once.
struct ProgramMemories {
  nn::ProgramMemory training;
  nn::ProgramMemory evaluation;
  int places = 0;
};

/// Plans the layers, and allocates nothing.
///
/// Errors    InvalidArgument as of nn::Program; DeviceError if a library fails that plans.
ProgramMemories plan_programs(const MemoryPlanSpec& spec, const MemoryPlanPlace& place);

/// The bytes that a rank's training will take, by class: its parts are made on a device that only counts
/// (kernels::PretendedDevice). A run's own count (Replica::memory) is to be laid beside it.
MemoryTable plan_memory(const MemoryPlanSpec& spec, const MemoryPlanPlace& place, const ProgramMemories& programs);

}  // namespace gradring::train
