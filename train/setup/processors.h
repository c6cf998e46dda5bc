// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "train/launch/worker_environment.h"

namespace gradring::train {

/// How many threads a rank computes with: as many as `asked` for; else OMP_NUM_THREADS; else its share of the cores, at
/// least one.
///
/// Errors    UsageError if either is more than kMostThreads.
unsigned threads_of_rank(std::int64_t asked, const WorkerEnvironment& place, const VariableLookup& environment);

/// Binds this process, and the threads that it will start, to `threads` cores that no other rank of this machine takes:
/// those that it may run on now, dealt out in the order of the ranks.
///
/// Errors    UsageError if there are not so many.
void pin_to_own_cores(unsigned threads, const WorkerEnvironment& place);

}  // namespace gradring::train
