// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/options/commands.h"

namespace gradring::train {

/// The subcommands of `gradring bench`.
extern const Command kBenchKernels, kBenchStep, kBenchCompare, kBenchAllReduce, kBenchLaunch, kBenchRestart,
    kBenchLoader, kBenchParallel, kBenchScaling, kBenchSeeds, kBenchDiff;

}  // namespace gradring::train
