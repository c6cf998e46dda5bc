// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/launch/launcher.h"
#include "train/launch/node_place.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

/// The place of a node that is the only one.
NodePlace only_node(const LaunchOptions& options);

/// What a worker is told of its place in attempt `attempt` of the run; the paths are left empty.
WorkerEnvironment place_of(const LaunchOptions& options, const NodePlace& node, int local_rank, int attempt);

/// The program's arguments, in which, as with torchrun, ${local_rank} is the worker's.
std::vector<std::string> arguments_of(const LaunchOptions& options, int local_rank);

/// What every worker is told of the run beside its place: TORCHELASTIC_SIGNALS_TO_HANDLE, as torchrun sets it.
Variables run_variables(const LaunchOptions& options);

/// The variables that give a worker its GPUs: none where all see what the launcher sees.
Variables device_variables(const LaunchOptions& options, int local_rank);

}  // namespace gradring::train
