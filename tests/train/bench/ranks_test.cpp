// SPDX-License-Identifier: Apache-2.0
#include "train/bench/ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

#include "comm/groups.h"
#include "comm/transport/error.h"

namespace gradring::train::bench {
namespace {

std::string message_of_ranks(const std::function<void(int)>& run_rank) {
  try {
    run_as_threads(3, run_rank);
    return "none";
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(RankThreads, RunEachRankOnce) {
  std::atomic<int> sum = 0;
  EXPECT_EQ(message_of_ranks([&](int rank) { sum += 1 << rank; }), "none");
  EXPECT_EQ(sum, 7);
}

TEST(RankThreads, ThrowTheCauseAndNotThoseWhoLostAPeer) {
  comm::InProcessHub hub(3, std::chrono::minutes(1));
  EXPECT_EQ(message_of_ranks([&](int rank) {
              const auto group = hub.join(rank);
              if (rank == 2) throw std::runtime_error("the disk is full");
              group->barrier_on_host();
            }),
            "the disk is full");
}

TEST(RankThreads, ThrowTheErrorOfARankThatBlamesAPeerIfNoOtherFailed) {
  EXPECT_EQ(message_of_ranks([](int rank) {
              if (rank == 1) throw comm::PeerLost({.rank = 1, .peer = 2}, "rank 2 is gone");
            }),
            "rank 2 is gone");
}

}  // namespace
}  // namespace gradring::train::bench
