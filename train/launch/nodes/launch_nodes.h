// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/launch/attempt.h"
#include "train/launch/launcher.h"
#include "train/launch/logs/terminal.h"

namespace gradring::train {

/// launch() for a run on several nodes, of which this is number `node_rank`: node 0 listens at master_addr and master_port
/// and decides, the others do as it says. Every node returns the same code; 161 if node 0 is lost.
///
/// Errors    InvalidArgument if node 0 refuses this node; DeviceError if the nodes do not find each other in time.
int launch_nodes(const LaunchOptions& options, Terminals& terminals, const Say& say);

}  // namespace gradring::train
