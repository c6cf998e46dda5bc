// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/from_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "train/config/usage_error.h"
#include "train/feed/resident_feed.h"
#include "train/precision/precision.h"

namespace gradring::train {
namespace {

comm::AllReduceAlgorithm algorithm_named(const std::string& name) {
  if (name == "ring") return comm::AllReduceAlgorithm::ring;
  if (name == "direct") return comm::AllReduceAlgorithm::direct;
  if (name == "nccl") return comm::AllReduceAlgorithm::nccl;
  return comm::AllReduceAlgorithm::automatic;
}

/// What options alone cannot tell: it depends on the device and the data.
void check_options(const TrainConfig& config, kernels::DType precision, std::int64_t steps) {
  if (config.wire_dtype == "fp16" && precision != kernels::DType::f16)
    throw UsageError(
        "--wire-dtype fp16 is for --precision fp16, whose loss scale keeps gradients within its range: take bf16");
  if (config.schedule.warmup_steps > steps)
    throw UsageError(fmt::format("--warmup-steps {} is more than the {} steps of this training: lower it",
                                 config.schedule.warmup_steps, steps));
}

}  // namespace

bool is_resident(const TrainConfig& config, const kernels::Device& device) {
  return config.resident == "on" || (config.resident == "auto" && device.id().kind == kernels::DeviceKind::cuda);
}

std::unique_ptr<BatchFeed> make_feed(const TrainConfig& config, FeedSpec spec, Replica& replica) {
  spec.dtype = replica.program().dtype();
  if (!is_resident(config, spec.device)) return std::make_unique<LoaderFeed>(spec);
  return std::make_unique<ResidentFeed>(spec, replica.stream(), Deadline::after(config.timeout));
}

std::int64_t all_steps(const TrainConfig& config, const data::StepSampler& sampler) {
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
          .world_size = world_size};
}

ReplicaSpec replica_spec(const TrainConfig& config, const kernels::Device& device, const StepSizes& sizes,
                         const data::StepSampler& sampler) {
  const std::int64_t steps = all_steps(config, sampler);
  const kernels::DType precision = precision_named(config.precision, device.id());
  check_options(config, precision, steps);
  return {.model = config.model,
          .batch_size = sizes.pass,
          .precision = precision,
          .checkpointing = config.checkpointing,
          .loss_scaling = loss_scaling_for(config, precision),
          .optimizer = config.optimizer,
          .learning_rates = learning_rates(config.schedule, config.learning_rate, steps),
          .clip_norm = config.clip_norm,
          .searches_gradients = config.on_nan != "auto",
          .buckets = config.buckets,
          .wire = {.dtype = precision_named(config.wire_dtype, device.id()),
                   .algorithm = algorithm_named(config.allreduce)},
          .zero = static_cast<int>(config.zero),
          .accumulates = sampler.most_of_rank() > sizes.pass,
          .sync_every_pass = config.sync_every_pass,
          .exact_terms = config.reproducible ? sizes.of_all / sizes.pass : 0,
          .overlap = config.overlap,
          .recorded = config.cuda_graph && device.id().kind == kernels::DeviceKind::cuda,
          .seed = config.seed};
}

}  // namespace gradring::train
