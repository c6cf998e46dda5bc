// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/config/train_config.h"
#include "train/launch/worker_environment.h"
#include "train/setup/compute.h"

namespace gradring::train {

/// The config with the values that `auto` and 0 stand for in this run, for config.resolved.toml: sampler, shard-size,
/// global-batch (and with it accumulate, which is 1 then), precision, device, backend, resident, threads, comm, allreduce,
/// on-nan. A run with these options and as many ranks on such a machine computes the same.
///
/// `auto` remains where it is a rule of its own and no other value says the same: conv and gemm (chosen for each layer; a
/// checkpoint's meta.json lists them), checkpoint-activations (planned by its budget), on-nan in fp32 and bf16 without
/// --clip-norm, progress, and what joins the ranks where a GPU has none to join. 0 remains where it means "off".
///
/// Errors    as step_sizes.
TrainConfig resolved_config(const TrainConfig& config, const Compute& compute, const WorkerEnvironment& place);

}  // namespace gradring::train
