// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/process_group.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/train_config.h"
#include "train/launch/worker_environment.h"
#include "train/setup/compute.h"

namespace gradring::train {

/// The config with the values that `auto` and 0 stand for in this run, for config.resolved.toml: sampler, shard-size,
/// global-batch (and with it accumulate, which is 1 then), precision, device, backend, resident, threads, comm,
/// allreduce, on-nan. A run with these options and as many ranks on such a machine computes the same.
///
/// `auto` remains where it is a rule of its own and no other value says the same: conv and gemm (chosen for each layer;
/// a checkpoint's meta.json lists them), checkpoint-activations (planned by its budget), on-nan in fp32 and bf16
/// without
/// --clip-norm, progress, and what joins the ranks where a GPU has none to join. 0 remains where it means "off".
///
/// Errors    as step_sizes.
TrainConfig resolved_config(const TrainConfig& config, const Compute& compute, const WorkerEnvironment& place);

/// Compares what the ranks were asked to do, before any of them sets something up. Blocks until all have come.
///
/// Errors    ReplicaError that names each option that differs and its values; comm::CommError.
void check_same_settings(comm::ProcessGroup& group, const TrainConfig& config);

/// Compares recorded_cpu_level() of the ranks' devices: replicas that round differently would not stay equal. Blocks
/// until all have come.
///
/// Errors    ReplicaError that names two levels and their ranks; comm::CommError.
void check_same_cpu_level(comm::ProcessGroup& group, const std::string& level);

/// What differs between the settings of the ranks (to_toml's texts, by rank): "batch-size is 8 on rank 0 but 16 on rank
/// 1". Empty if nothing does.
std::string describe_differences(std::span<const std::string> settings);

/// The settings of the run that saved a checkpoint, as TOML; nothing if it does not say.
std::optional<std::string> saved_settings(const Checkpoint& checkpoint);

/// What an option of words ("dataset", "model") was in the run that saved a checkpoint; empty if it does not say.
std::string saved_setting(const Checkpoint& checkpoint, std::string_view option);

/// What to tell a person whose steps have another number of samples than those of the run that saved the checkpoint:
/// often the number of ranks has changed. Empty if they have as many, or it does not say.
///
/// Errors    as step_sizes.
std::string step_change(const Checkpoint& checkpoint, const TrainConfig& config, int ranks);

}  // namespace gradring::train
