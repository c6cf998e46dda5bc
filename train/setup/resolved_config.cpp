// SPDX-License-Identifier: Apache-2.0
#include "train/setup/resolved_config.h"

#include "train/precision/precision.h"
#include "train/trainer/from_config.h"
#include "train/trainer/step_sizes.h"

namespace gradring::train {
namespace {

constexpr const char* kAuto = "auto";

void replace_auto(std::string& value, std::string_view resolved) {
  if (value == kAuto) value = resolved;
}

void resolve_sizes(TrainConfig& config, int world_size) {
  const StepSizes sizes = step_sizes(config, world_size);
  config.sampler = sizes.sharded ? "sharded" : "distributed";
  if (sizes.sharded) config.shard_size = sizes.pass;
  config.global_batch = sizes.of_all;
  config.accumulate = 1;  // a rank's share of the global batch is dealt in passes of the batch size anyway
}

void resolve_communication(TrainConfig& config, bool gpu, const WorkerEnvironment& place) {
  const bool spans_nodes = place.world_size != place.local_world_size;
  if (config.allreduce == "nccl") config.comm = "nccl";
  if (gpu && place.world_size == 1 && config.comm == kAuto) return;  // nothing joins a lone GPU
  replace_auto(config.comm, gpu ? "nccl" : spans_nodes ? "tcp" : "shm");
  replace_auto(config.allreduce, config.comm == "shm" && config.zero == 0 ? "direct" : "ring");
}

}  // namespace

TrainConfig resolved_config(const TrainConfig& config, const Compute& compute, const WorkerEnvironment& place) {
  TrainConfig resolved = config;
  const kernels::DeviceId device = compute.device->id();
  const bool gpu = device.kind == kernels::DeviceKind::cuda;
  replace_auto(resolved.device, gpu ? "cuda" : "cpu");
  replace_auto(resolved.backend, compute.backend->name());
  resolved.precision = precision_name(precision_named(config.precision, device));
  resolved.resident = is_resident(config, *compute.device) ? "on" : "off";
  resolved.threads = compute.threads;
  if (resolved.precision == "fp16")
    replace_auto(resolved.on_nan, "skip");
  else if (config.clip_norm > 0)
    replace_auto(resolved.on_nan, "halt");
  resolve_sizes(resolved, place.world_size);
  resolve_communication(resolved, gpu, place);
  return resolved;
}

}  // namespace gradring::train
