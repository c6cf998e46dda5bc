// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/places_of_nodes.h"

#include <map>

namespace gradring::train {

std::vector<NodePlace> places_of_nodes(std::span<const NodeOffer> offers, const std::string& master_addr,
                                       int master_port) {
  std::vector<NodePlace> places;
  std::map<std::string, int> in_role;
  int ranks = 0;
  for (const NodeOffer& offer : offers) {
    places.push_back({.node = static_cast<int>(places.size()),
                      .nodes = static_cast<int>(offers.size()),
                      .first_rank = ranks,
                      .first_role_rank = in_role[offer.role],
                      .master_addr = master_addr,
                      .master_port = master_port});
    ranks += offer.workers;
    in_role[offer.role] += offer.workers;
  }
  for (std::size_t node = 0; node < places.size(); ++node) {
    places[node].world_size = ranks;
    places[node].role_world_size = in_role[offers[node].role];
  }
  return places;
}

}  // namespace gradring::train
