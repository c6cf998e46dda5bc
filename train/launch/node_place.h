// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::train {

/// Where the workers of one node stand in the world of an attempt.
struct NodePlace {
  int node = 0;
  int nodes = 1;
  int first_rank = 0;  ///< of this node; ranks count through the nodes in order
  int world_size = 1;
  int first_role_rank = 0;  ///< the same among the workers of this node's role
  int role_world_size = 1;
  std::string master_addr{};
  int master_port = 0;
};

}  // namespace gradring::train
