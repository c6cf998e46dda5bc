// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/loader/sampler.h"
#include "train/core/config/train_config.h"
#include "train/core/input_pipeline/batch_loader.h"
#include "train/core/trainer/memory_plan.h"
#include "train/core/trainer/replica.h"

namespace gradring::train {

/// How many samples make a step and a pass, by the options.
struct StepSizes {
  bool sharded = false;           ///< each sample once per epoch, in whole shards; else PyTorch's DistributedSampler
  std::int64_t global = 64;       ///< in a step, over all ranks
  std::int64_t micro_batch = 64;  ///< over all ranks, whose samples depend on each other; else those of a step
  std::int64_t pass = 64;         ///< at most in one forward and backward pass
  std::int64_t shard = 64;        ///< that a pass computes at once

  int shards_of_pass() const { return static_cast<int>(pass / shard); }
};

/// Errors    UsageError if the options contradict each other for this number of ranks.
StepSizes step_sizes(const TrainConfig& config, int ranks);

/// The config without `auto` and 0 in what determines its rounding: sampler, shard-size, global-batch (and accumulate,
/// then 1), precision, backend, and threads of reproducible runs.
TrainConfig resolved_computation(const TrainConfig& config, const StepSizes& sizes, const kernels::DeviceId& device);

/// The sampler that deals `samples` samples by these sizes to the rank.
std::unique_ptr<data::StepSampler> make_steps(const StepSizes& sizes, std::int64_t samples, std::uint64_t seed,
                                              int rank, int ranks);

/// The same by the options, which may balance classes.
std::unique_ptr<data::StepSampler> make_steps(const TrainConfig& config, const StepSizes& sizes,
                                              const data::Dataset& train_set, int rank, int ranks);

/// Whether ranks communicate in every pass of a step: weights (ZeRO 3), sharded sums, or statistics of batches. Then
/// ranks with fewer samples run empty batches.
bool communicates_in_every_pass(const TrainConfig& config);

/// What is known of the data set that is trained on: config.facts, or those of the samples, with the mean and std of
/// --normalize.
///
/// Cost      as data::statistics_of if normalizes_by_data().
data::DatasetFacts facts_of(const TrainConfig& config, const data::Dataset& train_set);

/// A remark for each channel that has one value in all images, where normalizes_by_data().
std::vector<std::string> blank_channels(const data::DatasetFacts& facts);

/// Evaluation keeps no activations for backward, so its batch can be larger than training's.
inline constexpr std::int64_t kEvalBatch = 250;

/// Whether the training set is kept on the device (--resident). auto: on a GPU only, where copies would dominate the
/// step.
bool is_resident(const TrainConfig& config, const kernels::Device& device);

/// Whether a step is recorded once and launched as one (a CUDA graph, --cuda-graph): on a GPU, unless one process drives
/// several of them (--data-parallel).
bool records_steps(const TrainConfig& config, const kernels::Device& device);

/// The steps of a whole run, unless it ends early.
std::int64_t total_steps(const TrainConfig& config, const data::StepSampler& sampler);

/// The type of a precision; the automatic one is fp16 on a GPU and fp32 on a CPU.
kernels::DType dtype_of(Precision precision, const kernels::DeviceId& device);

/// The inverse.
///
/// Errors    InvalidArgument for another type.
Precision precision_of(kernels::DType dtype);
/// "fp32", "fp16", "bf16".
inline std::string precision_name(kernels::DType dtype) { return std::string(word_of(precision_of(dtype))); }

/// The loss scaling of a run in `precision`: dynamic in f16, none in f32 and bf16.
LossScaling loss_scaling_for(const TrainConfig& config, kernels::DType precision);

/// The options of a replica on `device` whose samples `sampler` deals.
///
/// Errors    UsageError for options that the device or the number of steps does not allow.
ReplicaSpec replica_spec(const TrainConfig& config, const kernels::Device& device, const StepSizes& sizes,
                         const data::StepSampler& sampler);

/// The question of `gradring plan`: what a rank's trainer would allocate.
///
/// Errors    as replica_spec.
MemoryPlanSpec memory_plan_spec(const TrainConfig& config, const kernels::Device& device,
                                const data::Dataset& train_set, int world_size);

/// Threads of a rank that prepare batches in host memory.
int loader_threads(const TrainConfig& config, const kernels::Device& device, int ranks);

/// The batches of a replica, in the type that it computes in.
///
/// Errors    DeviceError if the data set is to be resident and does not fit on the device.
std::unique_ptr<BatchLoader> make_batch_loader(const TrainConfig& config, BatchLoaderSpec spec, Replica& replica);

}  // namespace gradring::train
