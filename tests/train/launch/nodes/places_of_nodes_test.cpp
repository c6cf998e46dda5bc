// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/places_of_nodes.h"

#include <gtest/gtest.h>

namespace gradring::train {
namespace {

NodeOffer brings(int workers, const std::string& role = "default") { return {.workers = workers, .role = role}; }

TEST(PlacesOfNodes, ArePrefixSums) {
  const std::vector<NodeOffer> offers = {brings(2), brings(1), brings(4)};
  const auto places = places_of_nodes(offers, "host", 7);
  ASSERT_EQ(places.size(), 3u);
  const int first[] = {0, 2, 3};
  for (int node = 0; node < 3; ++node) {
    const NodePlace& place = places[static_cast<std::size_t>(node)];
    EXPECT_EQ(place.node, node);
    EXPECT_EQ(place.nodes, 3);
    EXPECT_EQ(place.first_rank, first[node]);
    EXPECT_EQ(place.first_role_rank, first[node]);
    EXPECT_EQ(place.world_size, 7);
    EXPECT_EQ(place.role_world_size, 7);
    EXPECT_EQ(place.master_addr, "host");
    EXPECT_EQ(place.master_port, 7);
  }
}

TEST(PlacesOfNodes, CountEachRoleByItself) {
  const std::vector<NodeOffer> offers = {brings(2, "actor"), brings(3, "learner"), brings(1, "actor")};
  const auto places = places_of_nodes(offers, "h", 1);
  EXPECT_EQ(places[2].first_rank, 5);
  EXPECT_EQ(places[2].first_role_rank, 2);
  EXPECT_EQ(places[2].role_world_size, 3);
  EXPECT_EQ(places[1].first_role_rank, 0);
  EXPECT_EQ(places[1].role_world_size, 3);
}

}  // namespace
}  // namespace gradring::train
