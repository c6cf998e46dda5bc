// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/from_config.h"

#include <fmt/format.h>

#include "train/config/usage_error.h"
#include "train/feed/resident_feed.h"
#include "train/precision/precision.h"

namespace gradring::train {
namespace {

/// Where the training set lies is the device's to decide, if nobody says: a GPU has the room, and copies are what it waits
/// for; a CPU reads the loader's memory in place.
bool is_resident(const TrainConfig& config, const kernels::Device& device) {
  return config.resident == "on" || (config.resident == "auto" && device.id().kind == kernels::DeviceKind::cuda);
}

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

std::unique_ptr<BatchFeed> make_feed(const TrainConfig& config, FeedSpec spec, Replica& replica) {
  spec.dtype = replica.program().dtype();
  if (!is_resident(config, spec.device)) return std::make_unique<LoaderFeed>(spec);
  return std::make_unique<ResidentFeed>(spec, replica.stream(), Deadline::after(config.timeout));
}

ReplicaSpec replica_spec(const TrainConfig& config, const kernels::Device& device, std::int64_t steps,
                         std::int64_t most_of_rank, std::int64_t pass) {
  const kernels::DType precision = precision_named(config.precision, device.id());
  check_options(config, precision, steps);
  return {.model = config.model,
          .batch_size = pass,
          .precision = precision,
          .checkpointing = config.checkpointing,
          .loss_scaling = loss_scaling_for(config, precision),
          .optimizer = config.optimizer,
          .learning_rates = learning_rates(config.schedule, config.learning_rate, steps),
          .clip_norm = config.clip_norm,
          .buckets = config.buckets,
          .wire = {.dtype = precision_named(config.wire_dtype, device.id()),
                   .algorithm = algorithm_named(config.allreduce)},
          .accumulates = most_of_rank > pass,
          .overlap = config.overlap,
          .recorded = config.cuda_graph && device.id().kind == kernels::DeviceKind::cuda,
          .seed = config.seed};
}

}  // namespace gradring::train
