// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "comm/process_group.h"
#include "train/launch/workers/worker_environment.h"
#include "train/options/commands.h"

namespace gradring::train::bench {

/// Calls `run_rank` for each rank in a thread of its own, and returns when all have ended.
///
/// Errors    what a rank threw. If several threw: the first of those that do not blame another rank (comm::PeerLost,
///           comm::Timeout), else the first of all. std::system_error if a thread cannot be started.
void run_as_threads(int world_size, const std::function<void(int rank)>& run_rank);

/// Calls `run_rank` if this process is a rank; else starts the ranks of `gradring bench BENCHMARK` with the same
/// arguments, or is the only one. `given`: --nprocs, or 0 for `by_default`.
///
/// Returns   the exit code; the launcher reports the errors of ranks that it started.
/// Errors    UsageError if another launcher started another number of ranks than given.
int run_as_processes(const std::string& benchmark, Arguments args, int given, int by_default,
                     const std::function<void(const WorkerEnvironment&)>& run_rank);

/// Processor time that the processes of the other ranks used since `begin`, each one's
/// processor_seconds_of_process() then. Collective.
double processor_seconds_of_others(comm::ProcessGroup& group, double begin);

}  // namespace gradring::train::bench
