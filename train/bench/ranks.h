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

/// A benchmark whose ranks are processes.
struct RankedBench {
  std::string name;    ///< "allreduce"
  Arguments args;      ///< of the command line
  int nprocs = 0;      ///< --nprocs; 0: not given
  int by_default = 1;  ///< ranks, unless --nprocs or another launcher says otherwise
};

/// Calls `run_rank` if a launcher has started this process as a rank, or if there is one rank; else starts the ranks, as
/// `gradring bench NAME ARGS`.
///
/// Returns   the exit code; the launcher reports the errors of ranks that it started.
/// Errors    UsageError if another launcher started another number of ranks than given.
int run_as_processes(const RankedBench& bench, const WorkerEnvironment& environment,
                     const std::function<void()>& run_rank);

/// Processor time that the processes of the other ranks on this node used since `begin`, each one's
/// processor_seconds_of_process() then. Collective.
double processor_seconds_of_others(comm::ProcessGroup& group, const WorkerEnvironment& environment, double begin);

}  // namespace gradring::train::bench
