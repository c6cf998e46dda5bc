// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/identity.h"

#include "train/launch/host_name.h"
#include "train/launch/nodes/meeting.h"

namespace gradring::train {

comm::tcp::Identity identity_of(const LaunchOptions& options, NodePart part) {
  // Neither --nnodes nor the node's number: whoever disagrees on those is to hear so.
  constexpr int kEveryWorld = 1 << 20;
  return {.rank = part == NodePart::leads ? 0 : 1,
          .world_size = kEveryWorld,
          .token = run_secret(options.token, options.run_id)};
}

NodeOffer offer_of(const LaunchOptions& options) {
  return {.node = options.rendezvous == Rendezvous::dynamic ? -1 : options.node_rank,
          .nodes = options.nnodes,
          .workers = options.nproc_per_node,
          .role = options.role,
          .host = host_name()};
}

}  // namespace gradring::train
