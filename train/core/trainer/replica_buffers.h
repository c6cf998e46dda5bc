// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/process_group.h"
#include "kernels/ops/kernel_set.h"
#include "nn/program/program.h"
#include "train/core/data_parallel/data_parallel.h"
#include "train/core/ddp/compute_weights.h"
#include "train/core/ddp/gradient_reducer.h"
#include "train/core/ddp/non_finite_check.h"
#include "train/core/ddp/parameter_groups.h"
#include "train/core/optim/optimizer.h"
#include "train/core/trainer/frozen_weights.h"
#include "train/core/trainer/model_buffers.h"
#include "train/core/trainer/train_step.h"
#include "train/records/metrics/memory_ledger.h"

namespace gradring::train {

/// The fewest samples that batch normalization normalizes together, and the step of an epoch that has them.
struct SmallestBatch {
  std::int64_t samples = 0;  ///< 0: unknown
  std::int64_t step = 0;     ///< from 1
};

/// What a replica is made of; equal on all ranks except the seed, of which rank 0's counts.
struct ReplicaSpec {
  nn::ModelText model = "convnet";
  std::int64_t batch_size = 64;  ///< at most, in one forward and backward pass
  kernels::DType precision = kernels::DType::f32;
  nn::Checkpointing checkpointing;
  StepSpec step;
  OptimizerSpec optimizer;
  BucketLimits buckets;
  WireSpec wire;
  int zero = 0;                  ///< what is sharded (ZeRO): 1 optimizer state, 2 gradients too, 3 weights too
  bool accumulates = false;      ///< a step may have several passes
  bool sync_every_pass = false;  ///< ranks sum the gradients of each pass (ZeRO 2 and 3)
  std::int64_t exact_terms =
      0;  ///< shards of all ranks in a step, for sums with the same bits in any order; 0: f32 sums
  bool sync_batch_norm = false;  ///< batches are normalized by the statistics of all ranks
  SmallestBatch smallest_batch;
  int shards = 1;          ///< then, of a pass: above 1 with exact sums, which then do not depend on the ranks
  bool overlap = true;     ///< gradients are summed while backward continues
  int devices = 1;         ///< over which this process splits each pass (--data-parallel)
  std::uint64_t seed = 0;  ///< of the initial weights

  /// Samples of the program of one device.
  std::int64_t batch_of_device() const { return samples_of_device(batch_size, devices); }
};

/// The model of such a replica.
///
/// Errors    InvalidArgument as make_model; UsageError if a replica of this kind cannot train its batch normalization.
nn::Model replica_model(const ReplicaSpec& spec, const kernels::Shape& sample, std::int64_t classes);

/// The layout of such a replica's arenas, on every rank.
nn::ArenaLayout replica_layout(const ReplicaSpec& spec, const nn::Model& model,
                               std::span<const nn::Parameter> parameters, int world_size);

/// A step's options with as many tables of learning rates as there are groups.
StepSpec for_groups(StepSpec step, const ParameterGroups& groups);

/// This rank's shards of the optimizer state: everything without ZeRO.
Shards replica_shards(int zero, const nn::ArenaLayout& layout, int world_size, int rank);

/// Memory in which backward may leave partial sums of gradients, for one launch that adds them up. On GPUs alone, where
/// a launch costs more than that; not where passes or devices add to gradients before (--accumulate, --data-parallel),
/// or to shards of them (--reproducible).
std::size_t most_partial_sum_bytes(const ReplicaSpec& spec, const kernels::Device& device);

/// Slots for buckets that share them: for those that a plan uses at once, and one that is in transfer meanwhile.
int slots_for(const nn::ArenaLayout& layout, const nn::Program& program);

/// Whether averaged weights can be evaluated where they are; else they are gathered into memory of their own.
bool averages_are_read_in_place(const Shards& shards, kernels::DType dtype);

/// Gradients, weights, and their communication: all memory of a replica besides its program, optimizer and step. The
/// memory plan makes the same on a device that only counts.
struct ReplicaBuffers {
  struct Parts {
    const kernels::KernelSet& kernels;
    comm::ProcessGroup& group;
    MemoryLedger& ledger;
    kernels::Stream& stream;
    const Shards& shards;
    const nn::Model& model;
    int slots = 0;  ///< slots_for the training program
  };
  /// Collective.
  ReplicaBuffers(const ReplicaSpec& spec, const Parts& parts);

  BucketMemory gradients;  ///< where backward writes
  ModelBuffers of_model;
  FrozenWeights frozen;
  DistributedDataParallel ddp;
  kernels::PartialSums partial_sums;  ///< that backward has left
  std::unique_ptr<GradientReducer> reducer;
  std::unique_ptr<ComputeWeights> weights;
  NonFiniteCheck check;
  std::vector<kernels::CountedBytes> held;  ///< memory from the transport
};

}  // namespace gradring::train
