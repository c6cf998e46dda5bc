// SPDX-License-Identifier: Apache-2.0
// Every failure ends in time on every rank and names the same failed rank.
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "comm/transport/error.h"
#include "tests/comm/support/desync.h"
#include "tests/comm/support/expect_error.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/transports/nccl/nccl_ranks.h"

namespace gradring::comm {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using tests::expect_error;
using tests::NcclRanks;
using tests::RankWorkspace;

constexpr std::chrono::milliseconds kShort(1500);  // enough for all threads to join, also on a busy machine

TEST(NcclFaults, WaitsForALateRank) {
  NcclRanks ranks(3);
  ranks.run([](ProcessGroup& group) {
    RankWorkspace work(group);
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    group.all_reduce(work.range(), *work.stream);
    group.barrier(*work.stream);
  });
}

/// Ranks look at the store all the time while they wait: if at a key of each peer, many ranks are slow.
TEST(NcclFaults, LooksForOneKeyWhileAllRanksAreThere) {
  NcclRanks ranks(4);
  ranks.run([&](ProcessGroup& group) {
    RankWorkspace work(group);
    const auto has_looked = [&] { return ranks.store().looked_for().size() >= 12; };
    if (group.rank() == 1) poll_until(has_looked, Deadline::after(std::chrono::seconds(30)));
    group.all_reduce(work.range(), *work.stream);
    EXPECT_THAT(ranks.store().looked_for(), ::testing::Each("nccl/group/notice"));
    group.barrier_on_host();
  });
  EXPECT_GE(ranks.store().looked_for().size(), 12u);
}

TEST(NcclFaults, AThrowingRankFailsAllOthers) {
  NcclRanks ranks(4);
  const auto errors = ranks.errors([](ProcessGroup& group) {
    RankWorkspace work(group);
    group.all_reduce(work.range(), *work.stream);
    if (group.rank() == 2) throw std::runtime_error("a planted error");
    group.all_reduce(work.range(), *work.stream);
    group.barrier(*work.stream);
  });
  for (const std::size_t rank : {0, 1, 3}) expect_error<PeerLost>(errors[rank], 2, "rank 2");
  expect_error<std::runtime_error>(errors[2]);
}

TEST(NcclFaults, TimeoutNamesTheRankThatNeverCalls) {
  NcclRanks ranks(4, kShort);
  std::atomic<int> waiting{3};
  const auto errors = ranks.errors([&](ProcessGroup& group) {
    RankWorkspace work(group);
    try {
      if (group.rank() != 2) group.all_reduce(work.range(), *work.stream);
    } catch (...) {
      --waiting;
      throw;
    }
    while (waiting > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  for (const std::size_t rank : {0, 1, 3}) expect_error<Timeout>(errors[rank], 2, "all_reduce 1");
  EXPECT_FALSE(errors[2]);
}

TEST(NcclFaults, EarlierStreamWorkDoesNotCountTowardsTheTimeout) {
  NcclRanks ranks(2, kShort);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      const auto group = ranks.join_on_callers_streams(rank);
      const auto stream = ranks.device(rank).make_stream(kernels::StreamMode::asynchronous);
      const auto segment = group->allocate(64);
      stream->enqueue([] { std::this_thread::sleep_for(2 * kShort); });
      group->all_reduce({.segment = segment.get(), .slice = {0, 16}}, *stream);
      stream->synchronize(Deadline::after(std::chrono::seconds(60)));
      EXPECT_NO_THROW(group->throw_if_failed());
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(NcclFaults, AHostThatWaitsForItsStreamLearnsWhichRankIsMissing) {
  constexpr auto kAmple = std::chrono::seconds(60);
  NcclRanks ranks(2, kShort);
  std::promise<void> over;
  const std::jthread missing([&] {
    const auto group = ranks.join_on_callers_streams(1);
    const auto stream = ranks.device(1).make_stream(kernels::StreamMode::asynchronous);
    const auto segment = group->allocate(64);
    group->all_reduce({.segment = segment.get(), .slice = {0, 16}}, *stream);
    stream->synchronize(Deadline::after(kAmple));
    over.get_future().wait_for(kAmple);
  });
  const auto group = ranks.join_on_callers_streams(0);
  const auto stream = ranks.device(0).make_stream(kernels::StreamMode::asynchronous);
  const auto segment = group->allocate(64);
  // The first collective connects the ranks; without that the second would already wait in its call.
  group->all_reduce({.segment = segment.get(), .slice = {0, 16}}, *stream);
  stream->synchronize(Deadline::after(kAmple));
  stream->enqueue([] { std::this_thread::sleep_for(kShort / 2); });  // so the collective starts after the host's wait
  std::exception_ptr error;
  try {
    group->all_reduce({.segment = segment.get(), .slice = {0, 16}}, *stream);
    stream->synchronize(group->after_collectives());
    group->throw_if_failed();
  } catch (...) {
    error = std::current_exception();
  }
  over.set_value();
  expect_error<Timeout>(error, 1, "all_reduce 2");
}

/// Runs two ranks that make different calls; expects a Desync on both, with messages that contain `one` and `other`.
/// Returns the misuse.
std::vector<std::string> expect_desync(const std::function<void(ProcessGroup&, RankWorkspace&)>& first,
                                       const std::function<void(ProcessGroup&, RankWorkspace&)>& second,
                                       const std::string& one, const std::string& other) {
  NcclRanks ranks(2, kShort);
  const auto errors = ranks.errors([&](ProcessGroup& group) {
    RankWorkspace work(group);
    (group.rank() == 0 ? first : second)(group, work);
    group.barrier(*work.stream);
  });
  tests::expect_all_desync(errors, {one, other});
  return ranks.take_misuse();
}

TEST(NcclFaults, ReportsDifferentElementCounts) {
  EXPECT_THAT(expect_desync([](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream); },
                            [](auto& group, auto& work) { group.all_reduce(work.range(102), *work.stream); },
                            "of 100 f32", "of 102 f32"),
              UnorderedElementsAre("rank 0 receives 50 f32 from rank 1, which sends 51 f32",
                                   "rank 1 receives 51 f32 from rank 0, which sends 50 f32"));
}

TEST(NcclFaults, ReportsAnExtraCall) {
  EXPECT_THAT(expect_desync([](auto& group, auto& work) { group.all_reduce(work.range(10), *work.stream); },
                            [](auto&, auto&) {}, "all_reduce 1", "barrier 1"),
              UnorderedElementsAre("rank 0 receives 5 f32 from rank 1, which sends 1 u8",
                                   "rank 1 receives 1 u8 from rank 0, which sends 5 f32"));
}

TEST(NcclFaults, ReportsDifferentAlgorithms) {
  const std::vector<std::string> misuse = expect_desync(
      [](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream, AllReduceAlgorithm::ring); },
      [](auto& group, auto& work) { group.all_reduce(work.range(100), *work.stream, AllReduceAlgorithm::nccl); },
      "(ring) of 100 f32", "(nccl) of 100 f32");
  EXPECT_THAT(misuse, IsEmpty());  // neither is connected
}

TEST(NcclFaults, ReportsDifferentRoots) {
  const std::vector<std::string> misuse =
      expect_desync([](auto& group, auto& work) { group.broadcast(work.range(100), 0, *work.stream); },
                    [](auto& group, auto& work) { group.broadcast(work.range(100), 1, *work.stream); },
                    "(chain, root 0) of 100 f32", "(chain, root 1) of 100 f32");
  EXPECT_THAT(misuse, IsEmpty());  // both send, none receives
}

/// Rank 2 is missing: rank 0 times out in a host call, while rank 1 needs rank 0 in a collective.
TEST(NcclFaults, AFailureOfAHostCallFailsCollectivesToo) {
  for (const bool leaves : {false, true}) {
    NcclRanks ranks(3, kShort);
    std::atomic<bool> failed{false}, over{false};
    const auto wait_for = [](const std::atomic<bool>& flag) {
      while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    const auto errors = ranks.errors([&](ProcessGroup& group) {
      RankWorkspace work(group);
      if (group.rank() == 2) return wait_for(over);
      try {
        if (group.rank() == 1) {
          wait_for(failed);
          group.all_reduce(work.range(), *work.stream);
        }
        group.broadcast_on_host("", 2);
      } catch (...) {
        (group.rank() == 0 ? failed : over) = true;
        if (group.rank() == 0 && !leaves) wait_for(over);
        throw;
      }
    });
    for (const std::size_t rank : {0, 1}) expect_error<Timeout>(errors[rank], 2, "rank 2");
  }
}

TEST(NcclFaults, ThrowsAgainAfterAFailure) {
  NcclRanks ranks(2, kShort);
  ranks.errors([](ProcessGroup& group) {
    RankWorkspace work(group);
    EXPECT_THROW(group.all_reduce(work.range(100 + 2 * static_cast<std::size_t>(group.rank())), *work.stream), Desync);
    EXPECT_THROW(group.all_reduce(work.range(100), *work.stream), Desync);
    EXPECT_THROW(group.allocate(8), Desync);
  });
  EXPECT_THAT(ranks.take_misuse(), UnorderedElementsAre("rank 0 receives 50 f32 from rank 1, which sends 51 f32",
                                                        "rank 1 receives 51 f32 from rank 0, which sends 50 f32"));
}

TEST(NcclFaults, AsynchronousNcclErrorFailsTheGroup) {
  NcclRanks ranks(2);
  const auto errors = ranks.errors([&](ProcessGroup& group) {
    RankWorkspace work(group);
    group.barrier_on_host();
    if (group.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      ranks.fake().fail(0, ncclRemoteError);
      while (true) {
        group.throw_if_failed();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    group.all_reduce(work.range(), *work.stream);
  });
  expect_error<PeerLost>(errors[0], -1, "remote error");
}

}  // namespace
}  // namespace gradring::comm
