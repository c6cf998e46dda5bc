// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/run_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "comm/process_group.h"
#include "nn/models/toml_text.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/training_state.h"

namespace gradring::train {
namespace {

/// Each of these enums has it.
template <class Choice>
void replace_auto(Choice& value, Choice resolved) {
  if (value == Choice::automatic) value = resolved;
}

void resolve_sizes(TrainConfig& config, int world_size) {
  const StepSizes sizes = step_sizes(config, world_size);
  config.sampler = sizes.sharded ? Sampler::sharded : Sampler::distributed;
  if (sizes.sharded) config.shard_size = sizes.pass;
  config.global_batch = sizes.global;
  config.accumulate = 1;  // a rank's share of the global batch is divided into passes of the batch size anyway
}

void resolve_communication(TrainConfig& config, bool gpu, const WorkerEnvironment& environment) {
  if (config.allreduce == AllReduce::nccl) config.comm = TransportKind::nccl;
  // A single GPU needs no transport.
  if (gpu && environment.world_size == 1 && config.comm == TransportKind::automatic) return;
  replace_auto(config.comm, gpu                         ? TransportKind::nccl
                            : environment.spans_nodes() ? TransportKind::tcp
                                                        : TransportKind::shm);
  replace_auto(config.allreduce,
               config.comm == TransportKind::shm && config.zero == 0 ? AllReduce::direct : AllReduce::ring);
}

}  // namespace

TrainConfig resolved_config(const TrainConfig& config, const Compute& compute, const WorkerEnvironment& environment) {
  TrainConfig resolved = config;
  const kernels::DeviceId device = compute.device->id();
  const bool gpu = device.kind == kernels::DeviceKind::cuda;
  if (resolved.device == "auto") resolved.device = gpu ? "cuda" : "cpu";
  replace_auto(resolved.backend, gpu ? BackendKind::cuda : BackendKind::cpu);
  resolved.precision = precision_of(dtype_of(config.precision, device));
  resolved.resident = is_resident(config, *compute.device) ? Resident::on : Resident::off;
  resolved.threads = compute.threads;
  replace_auto(resolved.on_nan, resolved.precision == Precision::fp16 ? OnNan::skip : OnNan::halt);
  resolve_sizes(resolved, environment.world_size);
  resolve_communication(resolved, gpu, environment);
  return resolved;
}

std::optional<std::string> saved_settings(const Checkpoint& checkpoint) {
  const auto settings = checkpoint.about->find("settings");
  if (settings == checkpoint.about->end() || !settings->is_string()) return std::nullopt;
  return settings->get<std::string>();
}

std::string saved_setting(const Checkpoint& checkpoint, std::string_view option) {
  const auto settings = saved_settings(checkpoint);
  if (!settings) return {};
  try {
    return nn::parse_toml(*settings)[option].value_or(std::string());
  } catch (const nn::TomlError&) {  // not written by gradring
    return {};
  }
}

std::string step_change(const Checkpoint& checkpoint, const TrainConfig& config, int ranks) {
  const auto found = checkpoint.about->find(kSamplesOfStep);
  if (found == checkpoint.about->end() || !found->is_number_integer()) return {};
  const auto before = found->get<std::int64_t>();
  const std::int64_t now = step_sizes(config, ranks).global;
  if (before == now) return {};
  return fmt::format(
      "a step has {} samples on {} rank{}, but had {} when the checkpoint was saved: --global-batch {} keeps that for "
      "any number of ranks",
      now, ranks, ranks == 1 ? "" : "s", before, before);
}

}  // namespace gradring::train
