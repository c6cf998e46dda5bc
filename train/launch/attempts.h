// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/launch/attempt.h"
#include "train/launch/launcher.h"

namespace gradring::train {

/// The policy of a run: attempt after attempt, until one ends well, the restarts are used up, or somebody stops it.
/// Says what went wrong. Returns the launcher's exit code.
int run_attempts(const LaunchOptions& options, Workers& workers, const Say& say);

}  // namespace gradring::train
