// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "comm/groups.h"
#include "comm/transport/error.h"
#include "tests/comm/support/expect_error.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/support/ranks.h"

namespace gradring::comm {
namespace {

using kernels::DType;
using tests::expect_error;
using tests::RankWorkspace;

constexpr std::chrono::seconds kLongTimeout(60);
constexpr std::chrono::milliseconds kShort(1500);  // enough for all threads to join, also on a busy machine

TEST(InProcessFaults, WaitsForALateRank) {
  tests::run_as_threads(3, [](ProcessGroup& group) {
    RankWorkspace work(group);
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    group.all_reduce(work.range(), *work.stream);
    if (group.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    group.barrier(*work.stream);
  });
}

TEST(InProcessFaults, WaitingUsesLittleCpuTime) {
  using std::chrono::nanoseconds;
  constexpr std::chrono::milliseconds kLate(300);
  tests::run_as_threads(2, [&](ProcessGroup& group) {
    RankWorkspace work(group);
    const auto busy = [] {
      timespec time{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
    };
    if (group.rank() == 1) std::this_thread::sleep_for(kLate);
    const auto before = busy();
    group.all_reduce(work.range(), *work.stream);
    EXPECT_LT(busy() - before, kLate / 2) << "rank " << group.rank() << " used the CPU while it waited";
  });
}

TEST(InProcessFaults, AThrowingRankFailsAllOthers) {
  const auto errors = tests::errors_of_threads(
      4,
      [](ProcessGroup& group) {
        RankWorkspace work(group);
        group.all_reduce(work.range(), *work.stream);
        if (group.rank() == 2) throw std::runtime_error("a planted error");
        group.all_reduce(work.range(), *work.stream);
        group.barrier(*work.stream);
      },
      kLongTimeout);
  for (const std::size_t rank : {0, 1, 3}) expect_error<PeerLost>(errors[rank], 2, "rank 2");
  expect_error<std::runtime_error>(errors[2]);
}

TEST(InProcessFaults, TimeoutNamesTheRankThatNeverCalls) {
  std::atomic<int> waiting{3};
  const auto errors = tests::errors_of_threads(
      4,
      [&](ProcessGroup& group) {
        RankWorkspace work(group);
        try {
          if (group.rank() != 2) group.all_reduce(work.range(), *work.stream);
        } catch (...) {
          --waiting;
          throw;
        }
        while (waiting > 0) std::this_thread::yield();
      },
      kShort);
  for (const std::size_t rank : {0, 1, 3}) expect_error<Timeout>(errors[rank], 2, "all_reduce 1");
  EXPECT_FALSE(errors[2]);
}

TEST(InProcessFaults, TimeoutNamesTheRankThatNeverJoins) {
  InProcessHub hub(3, kShort);
  std::exception_ptr error;
  std::thread other([&] { EXPECT_THROW(hub.join(0), CommError); });
  try {
    hub.join(2);
  } catch (...) {
    error = std::current_exception();
  }
  other.join();
  expect_error<Timeout>(error, 1, "rank 1");
}

TEST(InProcessFaults, RejectsInvalidRanks) {
  InProcessHub hub(1, kLongTimeout);
  EXPECT_THROW(hub.join(-1), InvalidArgument);
  EXPECT_THROW(hub.join(1), InvalidArgument);
  hub.join(0);
  EXPECT_THROW(hub.join(0), InvalidArgument);
  EXPECT_THROW(InProcessHub(0, kLongTimeout), InvalidArgument);
}

TEST(InProcessFaults, ThrowsAgainAfterAFailure) {
  tests::errors_of_threads(
      2,
      [](ProcessGroup& group) {
        RankWorkspace work(group);
        EXPECT_THROW(group.all_reduce(work.range(100 + static_cast<std::size_t>(group.rank())), *work.stream), Desync);
        EXPECT_THROW(group.all_reduce(work.range(100), *work.stream), Desync);
        EXPECT_THROW(group.allocate(8), Desync);
      },
      kLongTimeout);
}

TEST(InProcessFaults, RejectsInvalidRanges) {
  tests::run_as_threads(2, [](ProcessGroup& group) {
    RankWorkspace work(group);
    EXPECT_THROW(group.all_reduce(work.range(1001), *work.stream), InvalidArgument);
    EXPECT_THROW(group.all_reduce(work.range(1, 1000), *work.stream), InvalidArgument);
    EXPECT_THROW(group.all_reduce(work.range(~std::size_t{0}, 1), *work.stream), InvalidArgument);
    EXPECT_THROW(group.all_reduce(work.range(501, 0, DType::i64), *work.stream), InvalidArgument);
    EXPECT_THROW(group.all_reduce(work.range(1, 0, DType::u8), *work.stream), InvalidArgument);
    EXPECT_THROW(group.all_reduce({.segment = nullptr, .slice = {0, 1}}, *work.stream), InvalidArgument);
    EXPECT_THROW(group.broadcast(work.range(), 2, *work.stream), InvalidArgument);
    EXPECT_THROW(group.broadcast_on_host("", -1), InvalidArgument);
    group.all_reduce(work.range(), *work.stream);  // the group still works
  });
}

}  // namespace
}  // namespace gradring::comm
