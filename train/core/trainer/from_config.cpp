// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/from_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/base/processors.h"
#include "train/core/config/resolve.h"
#include "train/core/ddp/parameter_groups.h"
#include "train/core/optim/optimizer.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using kernels::DType;

/// Normalizes a channel that has one value in all images. The std of others, whose pixels are from 0 to 1, is at most 0.5.
constexpr float kBlankStd = 1;

/// Checks what depends on the device.
void check_precision(const TrainConfig& config, kernels::DType precision) {
  if (config.wire_dtype == Precision::fp16 && precision != kernels::DType::f16)
    throw UsageError(
        "--wire-dtype fp16 requires --precision fp16, whose loss scale keeps gradients in range: use --wire-dtype "
        "bf16");
}

/// Checks what depends on the data.
void check_warmup(const TrainConfig& config, std::span<const ParameterGroup> groups, const TrainingSteps& steps) {
  const std::int64_t warmup = config.schedule.warmup_steps;
  if (warmup > steps.total)
    throw UsageError(
        fmt::format("--warmup-steps {} is more than the {} steps of this training: lower it", warmup, steps.total));
  for (const ParameterGroup& group : groups)
    if (const std::int64_t trained = steps_of(group, steps); warmup > trained && !group.frozen)
      throw UsageError(
          fmt::format("--warmup-steps {} is more than the {} steps of parameters with epochs={} in --group: lower it, "
                      "or raise epochs",
                      warmup, trained, group.epochs));
}

/// Samples that are normalized together in the last pass of a step.
std::int64_t samples_of_last_pass(const TrainConfig& config, const StepSizes& sizes, const data::StepShare& step) {
  const auto last_part = [](std::int64_t samples, std::int64_t part) {
    return samples % part == 0 ? part : samples % part;
  };
  if (sizes.sharded) return last_part(step.samples, config.sync_batchnorm ? sizes.micro_batch : sizes.shard);
  const std::int64_t of_rank = step.end - step.begin;  // equal on all ranks
  return last_part(of_rank, sizes.pass) * (config.sync_batchnorm ? step.samples / of_rank : 1);
}

/// All steps of an epoch but the last are equal.
SmallestBatch smallest_batch(const TrainConfig& config, const StepSizes& sizes, const data::StepSampler& sampler) {
  const std::int64_t first = samples_of_last_pass(config, sizes, sampler.step(0));
  const std::int64_t steps = std::min(total_steps(config, sampler), sampler.steps());
  const std::int64_t last = samples_of_last_pass(config, sizes, sampler.step(steps - 1));
  return last < first ? SmallestBatch{last, steps} : SmallestBatch{first, 1};
}

}  // namespace

StepSizes step_sizes(const TrainConfig& config, int ranks) {
  if (config.data_parallel > 1 && ranks > 1)
    throw UsageError(
        fmt::format("--data-parallel {} trains on several devices from one process, but this run has {} ranks: start "
                    "one rank, or leave --data-parallel out",
                    config.data_parallel, ranks));
  const bool sharded = is_sharded(config);
  StepSizes sizes{
      .sharded = sharded,
      .global = config.global_batch > 0 ? config.global_batch : config.batch_size * config.accumulate * ranks,
      .shard = sharded && config.shard_size > 0 ? config.shard_size : config.batch_size};
  const std::int64_t micro_batches = has_joint_micro_batches(config) ? config.accumulate : 1;
  if (sharded && sizes.global % (micro_batches * sizes.shard) != 0)
    throw UsageError(fmt::format(
        "a step has {} samples{}, expected a multiple of the {} samples of a shard: change --global-batch or "
        "--shard-size",
        sizes.global, micro_batches > 1 ? fmt::format(" in {} micro-batches", micro_batches) : "", sizes.shard));
  if (!sharded && sizes.global % ranks != 0)
    throw UsageError(
        fmt::format("--global-batch is {}, expected a multiple of the {} ranks: change it, or use --sampler sharded",
                    sizes.global, ranks));
  sizes.micro_batch = sizes.global / micro_batches;
  sizes.pass = sizes.shard;
  if (has_joint_micro_batches(config)) sizes.pass = (sizes.micro_batch / sizes.shard + ranks - 1) / ranks * sizes.shard;
  return sizes;
}

TrainConfig resolved_computation(const TrainConfig& config, const StepSizes& sizes, const kernels::DeviceId& device) {
  TrainConfig resolved = config;
  if (config.sampler != Sampler::balanced) resolved.sampler = sizes.sharded ? Sampler::sharded : Sampler::distributed;
  if (sizes.sharded) resolved.shard_size = sizes.shard;
  resolved.global_batch = sizes.global;
  if (!has_joint_micro_batches(config))
    resolved.accumulate = 1;  // a rank's share of the global batch is divided into passes of the batch size anyway
  resolved.precision = precision_of(dtype_of(config.precision, device));
  if (config.backend == BackendKind::automatic)
    resolved.backend = device.kind == kernels::DeviceKind::cuda ? BackendKind::cuda : BackendKind::cpu;
  resolved.threads = threads_option(config);
  return resolved;
}

std::unique_ptr<data::StepSampler> make_steps(const StepSizes& sizes, std::int64_t samples, std::uint64_t seed,
                                              int rank, int ranks) {
  const data::StepSamplerSpec spec{
      .samples = samples, .rank = rank, .world_size = ranks, .seed = seed, .samples_of_step = sizes.global};
  if (!sizes.sharded) return data::make_distributed_steps(spec);
  return data::make_sharded_steps(spec, {.samples = sizes.shard, .of_micro_batch = sizes.micro_batch});
}

std::unique_ptr<data::StepSampler> make_steps(const TrainConfig& config, const StepSizes& sizes,
                                              const data::Dataset& train_set, int rank, int ranks) {
  auto steps = make_steps(sizes, train_set.size(), config.seed, rank, ranks);
  if (config.sampler != Sampler::balanced) return steps;
  return data::make_balanced_steps(std::move(steps), train_set, config.seed);
}

bool communicates_in_every_pass(const TrainConfig& config) {
  return config.sync_batchnorm || config.zero == 3 ||
         (config.zero == 2 && (config.sync_every_pass || config.reproducible));
}

data::DatasetFacts facts_of(const TrainConfig& config, const data::Dataset& train_set) {
  data::DatasetFacts facts = config.facts ? *config.facts : data::facts_of(train_set);
  set_normalization(facts, config.normalize);
  if (!normalizes_by_data(config)) return facts;
  const data::DatasetStatistics found = data::statistics_of(train_set);
  facts.mean.assign(found.mean.begin(), found.mean.end());
  facts.std.clear();
  for (const double std : found.std) facts.std.push_back(std > 0 ? static_cast<float>(std) : kBlankStd);
  return facts;
}

std::vector<std::string> blank_channels(const data::DatasetFacts& facts) {
  std::vector<std::string> remarks;
  for (std::size_t c = 0; c < facts.std.size(); ++c)
    if (facts.std[c] == kBlankStd)
      remarks.push_back(
          fmt::format("channel {} of {} has one value in all training images, so the model learns nothing from it",
                      c + 1, facts.std.size()));
  return remarks;
}

kernels::DType dtype_of(Precision precision, const kernels::DeviceId& device) {
  switch (precision) {
    case Precision::fp32: return DType::f32;
    case Precision::fp16: return DType::f16;
    case Precision::bf16: return DType::bf16;
    case Precision::automatic: break;
  }
  return device.kind == kernels::DeviceKind::cuda ? DType::f16 : DType::f32;
}

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return Precision::fp32;
    case DType::f16: return Precision::fp16;
    case DType::bf16: return Precision::bf16;
    default:
      throw InvalidArgument("type " + std::string(name_of(dtype)) + " is not a precision: expected f32, f16 or bf16");
  }
}

LossScaling loss_scaling_for(const TrainConfig& config, kernels::DType precision) {
  LossScaling scaling{.dynamic = precision == kernels::DType::f16, .initial = static_cast<float>(config.loss_scale)};
  scaling.policy.growth_interval = static_cast<std::int32_t>(config.loss_scale_interval);
  return scaling;
}

bool is_resident(const TrainConfig& config, const kernels::Device& device) {
  return config.resident == Resident::on ||
         (config.resident == Resident::automatic && device.id().kind == kernels::DeviceKind::cuda);
}

int loader_threads(const TrainConfig& config, const kernels::Device& device, int ranks) {
  constexpr int kMost = 4;
  if (config.loader_threads > 0) return static_cast<int>(config.loader_threads);
  if (device.id().kind == kernels::DeviceKind::cpu) return 1;  // training uses the processors
  return std::clamp(usable_processors() / ranks, 1, kMost);
}

std::unique_ptr<BatchLoader> make_batch_loader(const TrainConfig& config, BatchLoaderSpec spec, Replica& replica) {
  spec.dtype = replica.program().dtype();
  spec.keeps_f32 = replica.reads_f32();
  if (!is_resident(config, spec.device)) return std::make_unique<HostBatchLoader>(spec);
  return std::make_unique<ResidentBatchLoader>(spec, replica.stream(), Deadline::after(config.timeout));
}

bool records_steps(const TrainConfig& config, const kernels::Device& device) {
  return config.cuda_graph && config.data_parallel == 1 && device.id().kind == kernels::DeviceKind::cuda;
}

std::int64_t total_steps(const TrainConfig& config, const data::StepSampler& sampler) {
  if (config.epochs == 0) return config.steps;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / std::max<std::int64_t>(sampler.steps(), 1);
  const std::int64_t of_epochs = std::min(config.epochs, most) * sampler.steps();
  return config.steps > 0 ? std::min(config.steps, of_epochs) : of_epochs;
}

MemoryPlanSpec memory_plan_spec(const TrainConfig& config, const kernels::Device& device,
                                const data::Dataset& train_set, int world_size) {
  const StepSizes sizes = step_sizes(config, world_size);
  const auto sampler = make_steps(sizes, train_set.size(), config.seed, 0, world_size);
  return {.replica = replica_spec(config, device, sizes, *sampler),
          .resident = is_resident(config, device),
          .eval_batch = kEvalBatch,
          .world_size = world_size,
          .augment = config.augment,
          .repeats_samples = config.sampler == Sampler::balanced,
          .copies_evaluations = config.val_split || config.tta != Tta::none || config.optimizer.ema > 0};
}

ReplicaSpec replica_spec(const TrainConfig& config, const kernels::Device& device, const StepSizes& sizes,
                         const data::StepSampler& sampler) {
  const TrainingSteps steps{.total = total_steps(config, sampler), .of_epoch = sampler.steps()};
  const kernels::DType precision = dtype_of(config.precision, device.id());
  check_precision(config, precision);
  std::vector<ParameterGroup> groups(1);  // with one table for all, unless --group gives others
  if (!config.optimizer.groups.empty())
    groups = parameter_groups(nn::parameters_of(model_for(config)), config.optimizer).groups;
  check_warmup(config, groups, steps);
  return {.model = model_of(config),
          .batch_size = sizes.pass,
          .precision = precision,
          .checkpointing = config.checkpointing,
          .step = {.loss_scaling = loss_scaling_for(config, precision),
                   .learning_rates = learning_rates(groups, config.schedule, config.learning_rate, steps),
                   .groups = groups.size(),
                   .clip_norm = config.clip_norm,
                   .label_smoothing = config.label_smoothing,
                   .recorded = records_steps(config, device),
                   .seed = config.seed},
          .optimizer = config.optimizer,
          .buckets = config.buckets,
          .wire = {.dtype = dtype_of(config.wire_dtype, device.id()), .algorithm = config.allreduce},
          .zero = static_cast<int>(config.zero),
          .accumulates = sampler.most_of_rank() > sizes.pass,
          .sync_every_pass = config.sync_every_pass,
          .exact_terms = config.reproducible ? sizes.global / sizes.shard : 0,
          .sync_batch_norm = config.sync_batchnorm,
          .smallest_batch = smallest_batch(config, sizes, sampler),
          .shards = config.reproducible ? sizes.shards_of_pass() : 1,
          .overlap = config.overlap,
          .devices = static_cast<int>(config.data_parallel),
          .seed = config.seed};
}

}  // namespace gradring::train
