// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "comm/collectives/schedules.h"
#include "comm/transport/segment.h"

namespace gradring::comm {
namespace {

constexpr int kMaxWorld = 17;
constexpr std::size_t kSizes[] = {0, 1, 2, 3, 16, 17, 18, 33, 70};
constexpr std::size_t kChunks[] = {0, 1, 3, 1000};

/// For one element at one rank: how often it contains each rank's part.
using Parts = std::map<int, int>;

/// Simulates all ranks of a group and tracks which parts each element contains. Checks that every send matches a
/// receive of the same slice and every expose a reduce_exposed, that no two moves of one rank and step touch the same
/// elements, except two sends and reduce_exposed, which all name the same slice, and that every rank hears of the rank
/// before it.
class Simulation {
 public:
  Simulation(const Schedule& schedule, Extent extent) : schedule_(schedule), extent_(extent) {
    for (int rank = 0; rank < extent.world; ++rank) values_.emplace_back(extent.elements, Parts{{rank, 1}});
  }

  void run() {
    const std::size_t steps = schedule_.step_count(extent_);
    for (int rank = 0; rank < extent_.world; ++rank) ASSERT_EQ(schedule_.step_count(at(rank)), steps);
    for (std::size_t index = 0; index < steps && !::testing::Test::HasFatalFailure(); ++index) step(index);
    if (extent_.world > 1) {
      ASSERT_EQ(hears_of_prev_rank_.size(), static_cast<std::size_t>(extent_.world));
    }
  }

  const Parts& value(int rank, std::size_t element) const { return values_[static_cast<std::size_t>(rank)][element]; }

 private:
  using Outgoing = std::map<std::pair<int, int>, Move>;  // sent and exposed slices, by sender and receiver

  Extent at(int rank) const {
    Extent extent = extent_;
    extent.rank = rank;
    return extent;
  }

  void step(std::size_t index) {
    const auto before = values_;
    Outgoing outgoing;
    for (int rank = 0; rank < extent_.world; ++rank)
      for (const Move& move : schedule_.step(at(rank), index)) {
        ASSERT_TRUE(move.peer >= 0 && move.peer < extent_.world && move.peer != rank);
        ASSERT_LE(move.slice.offset + move.slice.elements, extent_.elements);
        ASSERT_TRUE(extent_.chunk == 0 || is_direct(move) || move.slice.elements <= extent_.chunk);
        if (!is_outgoing(move)) continue;
        ASSERT_TRUE(outgoing.emplace(std::pair(rank, move.peer), move).second) << "two sends to one rank in one step";
      }
    for (int rank = 0; rank < extent_.world; ++rank) receive(rank, index, before, outgoing);
    ASSERT_TRUE(outgoing.empty()) << "a send of step " << index << " matches no receive";
  }

  void receive(int rank, std::size_t index, const std::vector<std::vector<Parts>>& before, Outgoing& outgoing) {
    std::set<std::size_t> read, written;
    std::optional<Slice> summed;
    const std::vector<Move> moves = schedule_.step(at(rank), index);
    for (const Move& move : moves) {
      if (move.kind == Move::Kind::reduce_exposed) {
        ASSERT_EQ(summed.value_or(move.slice), move.slice);
        if (std::exchange(summed, move.slice)) continue;
      }
      for (std::size_t i = move.slice.offset; i < move.slice.offset + move.slice.elements; ++i) {
        const bool writes = move.kind != Move::Kind::send;
        ASSERT_FALSE(written.contains(i) || (writes && read.contains(i)))
            << "two moves of step " << index << " touch one element, and not only to send it";
        (writes ? written : read).insert(i);
      }
    }
    for (const Move& move : moves) {
      if (is_outgoing(move)) continue;
      const auto found = outgoing.find({move.peer, rank});
      ASSERT_TRUE(found != outgoing.end()) << "a receive of step " << index << " matches no send";
      if ((move.peer + 1) % extent_.world == rank) hears_of_prev_rank_.insert(rank);
      const Slice& theirs = found->second.slice;
      ASSERT_EQ(is_direct(found->second), is_direct(move));
      ASSERT_EQ(theirs, move.slice);
      for (std::size_t i = 0; i < move.slice.elements; ++i) {
        const Parts& incoming = before[static_cast<std::size_t>(move.peer)][theirs.offset + i];
        Parts& mine = values_[static_cast<std::size_t>(rank)][move.slice.offset + i];
        if (move.kind == Move::Kind::receive) mine.clear();
        for (const auto& [part, times] : incoming) mine[part] += times;
      }
      if (!is_direct(move)) outgoing.erase(found);
    }
    for (const Move& move : moves)
      if (move.kind == Move::Kind::reduce_exposed) write_back(rank, move, outgoing);
  }

  /// Writes the sum at `rank` to the slice that the peer exposed.
  void write_back(int rank, const Move& move, Outgoing& outgoing) {
    const auto exposed = outgoing.find({move.peer, rank});
    for (std::size_t i = 0; i < move.slice.elements; ++i)
      values_[static_cast<std::size_t>(move.peer)][exposed->second.slice.offset + i] =
          values_[static_cast<std::size_t>(rank)][move.slice.offset + i];
    outgoing.erase(exposed);
  }

  const Schedule& schedule_;
  Extent extent_;
  std::vector<std::vector<Parts>> values_;
  std::set<int> hears_of_prev_rank_;
};

Parts each_rank_once(int world) {
  Parts parts;
  for (int rank = 0; rank < world; ++rank) parts[rank] = 1;
  return parts;
}

/// Calls check(extent) for all worlds, sizes and chunks.
template <class Check>
void for_all_extents(const Check& check) {
  for (int world = 1; world <= kMaxWorld; ++world)
    for (const std::size_t elements : kSizes)
      for (const std::size_t chunk : kChunks) {
        SCOPED_TRACE("world " + std::to_string(world) + ", elements " + std::to_string(elements) + ", chunk " +
                     std::to_string(chunk));
        check(Extent{.world = world, .elements = elements, .chunk = chunk});
        if (::testing::Test::HasFatalFailure()) return;
      }
}

/// The same for schedules that do not chunk.
template <class Check>
void for_all_whole_extents(const Check& check) {
  for_all_extents([&](const Extent& extent) {
    if (extent.chunk == 0) check(extent);
  });
}

int owner_of(const Extent& extent, std::size_t element) {
  for (int rank = 0; rank < extent.world; ++rank) {
    const Slice shard =
        shard_of(extent.elements, static_cast<std::size_t>(extent.world), static_cast<std::size_t>(rank));
    if (element >= shard.offset && element < shard.offset + shard.elements) return rank;
  }
  return -1;
}

TEST(Schedule, AllReduceAddsEveryRankExactlyOnce) {
  for (const Schedule* schedule : {&kRingAllReduce, &kDirectAllReduce})
    for_all_extents([&](const Extent& extent) {
      Simulation simulation(*schedule, extent);
      ASSERT_NO_FATAL_FAILURE(simulation.run());
      for (int rank = 0; rank < extent.world; ++rank)
        for (std::size_t i = 0; i < extent.elements; ++i)
          ASSERT_EQ(simulation.value(rank, i), each_rank_once(extent.world));
    });
}

TEST(Schedule, ReduceScatterCompletesEachShardAtItsOwner) {
  for_all_extents([](const Extent& extent) {
    Simulation simulation(kRingReduceScatter, extent);
    ASSERT_NO_FATAL_FAILURE(simulation.run());
    for (std::size_t i = 0; i < extent.elements; ++i)
      ASSERT_EQ(simulation.value(owner_of(extent, i), i), each_rank_once(extent.world));
  });
}

void check_all_gather(const Schedule& schedule, const Extent& extent) {
  Simulation simulation(schedule, extent);
  ASSERT_NO_FATAL_FAILURE(simulation.run());
  for (int rank = 0; rank < extent.world; ++rank)
    for (std::size_t i = 0; i < extent.elements; ++i)
      ASSERT_EQ(simulation.value(rank, i), (Parts{{owner_of(extent, i), 1}}));
}

TEST(Schedule, AllGatherCopiesEachShardFromItsOwner) {
  for_all_extents([](const Extent& extent) { check_all_gather(kRingAllGather, extent); });
  for_all_whole_extents([](const Extent& extent) { check_all_gather(kDoublingAllGather, extent); });
}

void check_broadcast(const Schedule& schedule, Extent extent) {
  for (int root : {0, extent.world / 2, extent.world - 1}) {
    extent.root = root;
    Simulation simulation(schedule, extent);
    ASSERT_NO_FATAL_FAILURE(simulation.run());
    for (int rank = 0; rank < extent.world; ++rank)
      for (std::size_t i = 0; i < extent.elements; ++i) ASSERT_EQ(simulation.value(rank, i), (Parts{{root, 1}}));
  }
}

TEST(Schedule, BroadcastCopiesTheRootsElements) {
  for_all_extents([](const Extent& extent) { check_broadcast(kChainBroadcast, extent); });
  for_all_whole_extents([](const Extent& extent) { check_broadcast(kTreeBroadcast, extent); });
}

TEST(Schedule, SmallValuesNeedLogarithmicallyManySteps) {
  EXPECT_EQ(kDoublingAllGather.step_count({.world = 2, .elements = 2}), 1u) << "a training step of two ranks has one";
  EXPECT_EQ(kTreeBroadcast.step_count({.world = 2, .elements = 2, .root = 0}), 2u);
  for (const Schedule* schedule : {&kDoublingAllGather, &kTreeBroadcast}) {
    EXPECT_EQ(schedule->step_count({.world = 64, .elements = 64, .root = 0}), 7u) << schedule->operation;
    EXPECT_EQ(schedule->step_count({.world = 65, .elements = 65, .root = 0}), 8u) << schedule->operation;
  }
}

TEST(Schedule, DoublingReceivesEachElementOnce) {
  for_all_whole_extents([](Extent extent) {
    for (extent.rank = 0; extent.rank < extent.world; ++extent.rank) {
      std::size_t received =
          shard_of(extent.elements, static_cast<std::size_t>(extent.world), static_cast<std::size_t>(extent.rank))
              .elements;
      for (std::size_t index = 0; index < kDoublingAllGather.step_count(extent); ++index)
        for (const Move& move : kDoublingAllGather.step(extent, index))
          if (move.kind == Move::Kind::receive) received += move.slice.elements;
      ASSERT_EQ(received, extent.elements);
    }
  });
}

TEST(Schedule, BarrierWaitsForEveryRank) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    const Extent extent{.world = world};
    ASSERT_NO_FATAL_FAILURE(Simulation(kDisseminationBarrier, extent).run());
    std::vector<std::set<int>> heard_of;
    for (int rank = 0; rank < world; ++rank) heard_of.push_back({rank});
    for (std::size_t index = 0; index < kDisseminationBarrier.step_count(extent); ++index) {
      const auto before = heard_of;
      for (int rank = 0; rank < world; ++rank)
        for (const Move& move : kDisseminationBarrier.step({.rank = rank, .world = world}, index))
          if (move.kind == Move::Kind::receive)
            heard_of[static_cast<std::size_t>(rank)].merge(std::set(before[static_cast<std::size_t>(move.peer)]));
    }
    for (const std::set<int>& ranks : heard_of) EXPECT_EQ(ranks.size(), static_cast<std::size_t>(world));
  }
}

TEST(Schedule, HasNoStepsForAWorldOfOne) {
  for (const Schedule* schedule : {&kDirectAllReduce, &kRingAllReduce, &kRingReduceScatter, &kRingAllGather,
                                   &kChainBroadcast, &kDoublingAllGather, &kTreeBroadcast, &kDisseminationBarrier})
    EXPECT_EQ(schedule->step_count({.world = 1, .elements = 100, .chunk = 3}), 0u) << schedule->operation;
}

TEST(Schedule, RingAllReduceSendsTheMinimum) {
  const Extent extent{.rank = 2, .world = 5, .elements = 1000, .chunk = 64};
  std::size_t sent = 0;
  for (std::size_t index = 0; index < kRingAllReduce.step_count(extent); ++index)
    for (const Move& move : kRingAllReduce.step(extent, index))
      if (move.kind == Move::Kind::send) sent += move.slice.elements;
  EXPECT_EQ(sent, 2u * 4 * 1000 / 5);
}

}  // namespace
}  // namespace gradring::comm
