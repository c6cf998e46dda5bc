// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/launch/workers/attempt.h"
#include "train/launch/workers/launch_options.h"
#include "train/options/terminal.h"

namespace gradring::train {

/// launch() for a run on several nodes, of which this one is `node_rank`. Node 0 leads: it listens at master_port and
/// decides what the agents of the other nodes, its followers, do. These dial master_addr. All nodes return the same
/// code; the followers return 161 if node 0 is lost.
///
/// Errors    InvalidArgument if node 0 refuses this node; DeviceError if the nodes do not connect in time.
int launch_nodes(const LaunchOptions& options, Terminals& terminals, const Logger& log);

}  // namespace gradring::train
