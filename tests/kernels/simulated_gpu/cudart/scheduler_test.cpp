// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace gradring::simulated_gpu {
namespace {

using testing::ElementsAre;
using WorkPtr = Scheduler::WorkPtr;

/// Longer than any test: work runs only if it is asked for.
constexpr std::chrono::hours kForever(1);

/// The order in which numbered work was performed.
class Order {
 public:
  Scheduler::Spec numbered(int number, std::uint64_t lane) {
    return {.run =
                [this, number] {
                  const std::lock_guard lock(mutex_);
                  order_.push_back(number);
                  return 1.0;
                },
            .lane = lane};
  }
  std::vector<int> seen() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int> order_;
};

/// Random work: each piece is behind up to three earlier ones.
struct Dag {
  explicit Dag(unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < kSize; ++i) {
      std::set<int> after;
      for (unsigned edges = random() % 4; i > 0 && edges > 0; --edges)
        after.insert(static_cast<int>(random() % static_cast<unsigned>(i)));
      behind.push_back({after.begin(), after.end()});
      lane.push_back(random() % 5);
    }
  }
  static constexpr int kSize = 60;
  std::vector<std::vector<int>> behind;
  std::vector<std::uint64_t> lane;

  std::vector<int> order_with(std::uint64_t seed) const {
    Order order;
    Scheduler scheduler(seed, kForever);
    std::vector<WorkPtr> work;
    for (int i = 0; i < kSize; ++i) {
      std::vector<WorkPtr> after;
      for (const int other : behind[static_cast<std::size_t>(i)])
        after.push_back(work[static_cast<std::size_t>(other)]);
      work.push_back(scheduler.enqueue(order.numbered(i, lane[static_cast<std::size_t>(i)]), after));
    }
    scheduler.wait_for_all();
    return order.seen();
  }
};

TEST(Scheduler, NeverPerformsWorkBeforeWhatItIsBehind) {
  for (unsigned shape = 0; shape < 10; ++shape) {
    const Dag dag(shape);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<int> order = dag.order_with(seed);
      ASSERT_EQ(order.size(), std::size_t{Dag::kSize});
      std::vector<int> place(Dag::kSize);
      for (int i = 0; i < Dag::kSize; ++i) place[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = i;
      for (std::size_t i = 0; i < Dag::kSize; ++i)
        for (const int other : dag.behind[i])
          ASSERT_LT(place[static_cast<std::size_t>(other)], place[i]) << "shape " << shape << ", seed " << seed;
    }
  }
}

TEST(Scheduler, OrderDependsOnTheSeedAlone) {
  const Dag dag(1);
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<int> order = dag.order_with(seed);
    EXPECT_EQ(dag.order_with(seed), order) << seed;
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 15u);
}

/// A missing dependency between two long lanes: either may be done first, with a fair part of the seeds.
TEST(Scheduler, EitherOfTwoLanesMayBeFirst) {
  int second_first = 0;
  constexpr int kSeeds = 40;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Order order;
    Scheduler scheduler(seed, kForever);
    for (std::uint64_t lane = 0; lane < 2; ++lane) {
      WorkPtr last;
      for (int i = 0; i < 10; ++i)
        last = scheduler.enqueue(order.numbered(static_cast<int>(lane) * 100 + i, lane), {&last, 1});
    }
    scheduler.wait_for_all();
    const std::vector<int> seen = order.seen();
    second_first += std::ranges::find(seen, 109) < std::ranges::find(seen, 9) ? 1 : 0;
  }
  EXPECT_GT(second_first, kSeeds / 4);
  EXPECT_LT(second_first, kSeeds * 3 / 4);
}

TEST(Scheduler, HoldsWorkBackUntilItIsAskedFor) {
  Order order;
  Scheduler scheduler(3, kForever);
  const WorkPtr first = scheduler.enqueue(order.numbered(1, 1), {});
  const WorkPtr second = scheduler.enqueue(order.numbered(2, 1), {&first, 1});
  const WorkPtr third = scheduler.enqueue(order.numbered(3, 1), {&second, 1});
  EXPECT_FALSE(scheduler.is_done(first));
  scheduler.wait(second);
  EXPECT_THAT(order.seen(), ElementsAre(1, 2)) << "no more than was asked for";
  EXPECT_FALSE(scheduler.is_done(third));
}

TEST(Scheduler, RequestsDoNotPerformWhatIsEnqueuedLater) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Order order;
    Scheduler scheduler(seed, kForever);
    std::atomic<bool> go_on{false};
    const WorkPtr slow = scheduler.enqueue({.run =
                                                [&] {
                                                  while (!go_on) std::this_thread::yield();
                                                  return 0.0;
                                                },
                                            .lane = 1},
                                           {});
    const WorkPtr asked = scheduler.enqueue(order.numbered(1, 1), {&slow, 1});
    scheduler.request(asked);
    scheduler.enqueue(order.numbered(2, 2), {});  // while the first runs: its speed must not matter
    go_on = true;
    scheduler.wait(asked);
    EXPECT_THAT(order.seen(), ElementsAre(1)) << seed;
  }
}

TEST(Scheduler, GoesOnByItselfWhenNoCallComes) {
  Scheduler scheduler(0, std::chrono::milliseconds(1));
  std::atomic<bool> done{false};
  scheduler.enqueue({.run = [&] { return done = true, 0.0; }}, {});
  while (!done) std::this_thread::yield();  // nobody asks
}

TEST(Scheduler, HoldsWorkBackAfterASlowRequest) {
  constexpr std::chrono::milliseconds kHold(500);
  Scheduler scheduler(0, kHold);
  std::chrono::steady_clock::time_point ended;
  const auto is_slow = [&] {
    std::this_thread::sleep_for(kHold + kHold / 2);
    ended = std::chrono::steady_clock::now();
    return 0.0;
  };
  const WorkPtr slow = scheduler.enqueue({.run = is_slow, .lane = 1}, {});
  const WorkPtr later = scheduler.enqueue({.run = [] { return 0.0; }, .lane = 1}, {&slow, 1});
  scheduler.wait(slow);
  const bool is_early = scheduler.is_done(later);
  const bool is_late = std::chrono::steady_clock::now() > ended + kHold;  // this thread, on a busy machine
  EXPECT_TRUE(!is_early || is_late);
}

TEST(Scheduler, FunctionsOfTheHostThatWaitDoNotStopTheDevice) {
  Scheduler scheduler(0, kForever);
  std::atomic<bool> reached{false};
  const WorkPtr waiting = scheduler.enqueue({.run =
                                                 [&] {
                                                   while (!reached) std::this_thread::yield();
                                                   return 0.0;
                                                 },
                                             .on_host = true,
                                             .lane = 1},
                                            {});
  scheduler.request(waiting);
  scheduler.wait(scheduler.enqueue({.run = [&] { return reached = true, 0.0; }, .lane = 2}, {}));
  scheduler.wait(waiting);
  EXPECT_TRUE(scheduler.is_done(waiting));
}

/// A receive may wait for a sender that waits for later work of this process.
TEST(Scheduler, GoesOnWithLaterWorkWhileATargetWaitsForAFunctionOfTheHost) {
  std::atomic<bool> is_over{false};
  Scheduler scheduler(0, std::chrono::milliseconds(20));
  const WorkPtr waiting = scheduler.enqueue({.run =
                                                 [&] {
                                                   while (!is_over) std::this_thread::yield();
                                                   return 0.0;
                                                 },
                                             .on_host = true,
                                             .lane = 0},
                                            {});
  scheduler.request(waiting);
  const WorkPtr later = scheduler.enqueue({.run =
                                               [&] {
                                                 is_over = true;
                                                 return 0.0;
                                               },
                                           .lane = 1},
                                          {});
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto is_done = [&] { return scheduler.is_done(waiting) && scheduler.is_done(later); };
  while (!is_done() && std::chrono::steady_clock::now() < until) scheduler.request(waiting);
  EXPECT_TRUE(is_done());
  is_over = true;
}

TEST(Scheduler, KnowsAllEarlierWorkAlthoughNobodyWaitsForWhatJoinsIt) {
  Scheduler scheduler(1, kForever);
  Order order;
  WorkPtr left;  // as by streams that are destroyed after the host waited for them
  for (std::uint64_t lane = 1; lane <= 5; ++lane) {
    const WorkPtr work = scheduler.enqueue(order.numbered(0, lane), {});
    scheduler.wait(work);
    const WorkPtr both[] = {work, left};
    left = scheduler.enqueue({.run = {}, .lane = lane}, both);
  }
  EXPECT_EQ(scheduler.host_use().before.all_up_to(), 9u) << "all but the last, which joins";
}

TEST(Scheduler, CountsTimeAlongTheLongestChain) {
  Scheduler scheduler(0, kForever);
  const auto takes = [](double seconds) { return Scheduler::Spec{.run = [seconds] { return seconds; }}; };
  const WorkPtr left = scheduler.enqueue(takes(1), {});
  const WorkPtr right = scheduler.enqueue(takes(5), {});
  const std::vector<WorkPtr> both = {left, right};
  const WorkPtr joined = scheduler.enqueue({}, both);
  const WorkPtr last = scheduler.enqueue(takes(2), {&joined, 1});
  scheduler.wait(last);
  EXPECT_EQ(scheduler.end_seconds(joined), 5);
  EXPECT_EQ(scheduler.end_seconds(last), 7);
}

}  // namespace
}  // namespace gradring::simulated_gpu
