// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include "train/launch/nodes/leader.h"

namespace gradring::train {
namespace {

using namespace std::chrono_literals;

const SignalDeduplicator::Clock::time_point kBegin{};

TEST(SignalDeduplicator, OneCtrlCAtAllAgentsIsOne) {
  SignalDeduplicator echoes;
  EXPECT_TRUE(echoes.is_new(SIGINT, 1, kBegin));
  EXPECT_FALSE(echoes.is_new(SIGINT, 0, kBegin + 3ms));
  EXPECT_FALSE(echoes.is_new(SIGINT, 2, kBegin + 900ms));
}

TEST(SignalDeduplicator, TheSecondAtAnyAgentIsASecond) {
  SignalDeduplicator echoes;
  EXPECT_TRUE(echoes.is_new(SIGINT, 1, kBegin));
  EXPECT_FALSE(echoes.is_new(SIGINT, 0, kBegin + 1ms));
  EXPECT_TRUE(echoes.is_new(SIGINT, 0, kBegin + 500ms));
  EXPECT_FALSE(echoes.is_new(SIGINT, 1, kBegin + 501ms));
}

TEST(SignalDeduplicator, AnotherAgentsOfLaterIsMeant) {
  SignalDeduplicator echoes;
  EXPECT_TRUE(echoes.is_new(SIGUSR2, 0, kBegin));
  EXPECT_TRUE(echoes.is_new(SIGUSR2, 1, kBegin + 3s));
}

TEST(SignalDeduplicator, EachSignalIsByItself) {
  SignalDeduplicator echoes;
  EXPECT_TRUE(echoes.is_new(SIGTERM, 0, kBegin));
  EXPECT_TRUE(echoes.is_new(SIGINT, 1, kBegin));
}

JoinRequest with_workers(int workers, const std::string& role = "default") {
  return {.workers = workers, .role = role};
}

TEST(AssignRanks, ComputesPrefixSums) {
  const std::vector<JoinRequest> offers = {with_workers(2), with_workers(1), with_workers(4)};
  const auto places = assign_ranks(offers, 7);
  ASSERT_EQ(places.size(), 3u);
  const int first[] = {0, 2, 3};
  for (int node = 0; node < 3; ++node) {
    const NodeAssignment& place = places[static_cast<std::size_t>(node)];
    EXPECT_EQ(place.node, node);
    EXPECT_EQ(place.nodes, 3);
    EXPECT_EQ(place.first_rank, first[node]);
    EXPECT_EQ(place.first_role_rank, first[node]);
    EXPECT_EQ(place.world_size, 7);
    EXPECT_EQ(place.role_world_size, 7);
    EXPECT_EQ(place.master_port, 7);
  }
}

TEST(AssignRanks, CountsEachRoleSeparately) {
  const std::vector<JoinRequest> offers = {with_workers(2, "actor"), with_workers(3, "learner"),
                                           with_workers(1, "actor")};
  const auto places = assign_ranks(offers, 1);
  EXPECT_EQ(places[2].first_rank, 5);
  EXPECT_EQ(places[2].first_role_rank, 2);
  EXPECT_EQ(places[2].role_world_size, 3);
  EXPECT_EQ(places[1].first_role_rank, 0);
  EXPECT_EQ(places[1].role_world_size, 3);
}

}  // namespace
}  // namespace gradring::train
