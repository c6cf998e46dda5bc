// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/identity.h"

#include "train/launch/host_name.h"
#include "train/launch/nodes/meeting.h"

namespace gradring::train {

comm::tcp::Identity identity_of(const LaunchOptions& options) {
  // Not --nnodes: nodes that disagree on it are to hear so.
  constexpr int kEveryWorld = 1 << 20;
  return {.rank = options.node_rank, .world_size = kEveryWorld, .token = run_secret(options.token, options.run_id)};
}

NodeOffer offer_of(const LaunchOptions& options) {
  return {.node = options.node_rank,
          .nodes = options.nnodes.most,
          .workers = options.nproc_per_node,
          .role = options.role,
          .host = host_name()};
}

}  // namespace gradring::train
