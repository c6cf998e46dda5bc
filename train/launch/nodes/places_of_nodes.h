// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "train/launch/nodes/message.h"

namespace gradring::train {

/// The places of all nodes, by their offers in the order of their numbers: ranks are prefix sums of the nodes' workers, role
/// ranks the same within a role. Nodes may bring different numbers of workers.
std::vector<NodePlace> places_of_nodes(std::span<const NodeOffer> offers, const std::string& master_addr,
                                       int master_port);

}  // namespace gradring::train
