// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/launch/worker_exit.h"

namespace gradring::train {

/// What the person reads at the end of an attempt that failed: a line for each failure, the root cause first, then the
/// others as they were seen. Ranks that failed exactly as the first one, and those that only missed a peer, are named in
/// its line, so that nothing is said twice. Whom the launcher asked to end has not failed, unless it left a message. Empty
/// if nobody has.
std::vector<std::string> failure_lines(std::span<const WorkerExit> exits, const std::string& program, int world_size);

}  // namespace gradring::train
