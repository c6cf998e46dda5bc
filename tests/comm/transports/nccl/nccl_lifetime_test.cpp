// SPDX-License-Identifier: Apache-2.0
// Ranks that die, stop, leave or keep graphs: no rank waits longer than the timeout and the time for an abort.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/transport/error.h"
#include "tests/comm/support/expect_error.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/support/ranks.h"
#include "tests/comm/transports/nccl/nccl_ranks.h"
#include "tests/support/sanitizer.h"

namespace gradring::comm {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using tests::expect_error;
using tests::NcclRanks;
using tests::RankWorkspace;

/// Long enough for eight ranks on a busy machine.
constexpr std::chrono::milliseconds kLifetimeTimeout(tests::kSanitizer.empty() ? 1500 : 6000);
constexpr std::chrono::milliseconds kAbort(1000);

void abort_fast(int, nccl::Dependencies& dependencies) { dependencies.abort_timeout = kAbort; }

/// World size, and whether collectives are captured.
class NcclLostRank : public ::testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(NcclLostRank, RankKilledInsideNcclIsATimeout) {
  const auto& [world, captured] = GetParam();
  NcclRanks ranks(world, kLifetimeTimeout);
  ranks.captured = captured;
  const auto errors = ranks.errors([&](ProcessGroup& group) {
    RankWorkspace work(group);
    group.all_reduce(work.range(), *work.stream);
    group.barrier_on_host();
    if (group.rank() == 1) ranks.fake().kill(1);
    group.barrier_on_host();
    group.all_reduce(work.range(), *work.stream);
  });
  for (const std::exception_ptr& error : errors) expect_error<Timeout>(error);
  EXPECT_THAT(ranks.exit_messages(), IsEmpty());
}

/// NCCL's abort waits for the stopped process where it is connected with it, so those ranks end their process instead.
TEST_P(NcclLostRank, NeighboursOfAStoppedRankExit) {
  const auto& [world, captured] = GetParam();
  const std::size_t neighbours = world == 2 ? 1 : 2;
  NcclRanks ranks(world, kLifetimeTimeout);
  ranks.captured = captured;
  ranks.adjust = abort_fast;
  // Without those of rank 1: its watchdog is a thread here, which a stopped process would not run.
  const auto exit_messages = [&] {
    std::vector<std::string> messages = ranks.exit_messages();
    std::erase_if(messages, [](const std::string& message) { return message.starts_with("rank 1 "); });
    return messages;
  };
  const auto errors = ranks.errors([&](ProcessGroup& group) {
    RankWorkspace work(group);
    group.all_reduce(work.range(), *work.stream);
    group.barrier_on_host();
    if (group.rank() != 1) return group.all_reduce(work.range(), *work.stream);
    ranks.fake().stop(1);
    poll_until([&] { return exit_messages().size() == neighbours; }, Deadline::after(20 * kLifetimeTimeout));
    ranks.fake().resume(1);
  });
  for (std::size_t rank = 0; rank < errors.size(); ++rank)
    if (rank != 1) expect_error<Timeout>(errors[rank], 1, captured ? "graph" : "all_reduce 2");
  EXPECT_THAT(exit_messages(), SizeIs(neighbours));
  EXPECT_THAT(exit_messages(), Each(HasSubstr("abort of NCCL did not end")));
}

INSTANTIATE_TEST_SUITE_P(Worlds, NcclLostRank, ::testing::Combine(::testing::Values(2, 8), ::testing::Bool()),
                         [](const auto& test) {
                           return fmt::format("World{}{}", std::get<0>(test.param),
                                              std::get<1>(test.param) ? "Captured" : "");
                         });

/// A process that waits for a signal.
class IdleProcess {
 public:
  IdleProcess() : pid_(::fork()) {
    if (pid_ == 0)
      while (true) ::pause();
  }
  ~IdleProcess() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

void throw_when_failed(const ProcessGroup& group) {
  while (true) {
    group.throw_if_failed();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(NcclLifetime, EndOfAPeersProcessIsNoticedWithoutATimeout) {
  NcclRanks ranks(3);
  IdleProcess process;
  ranks.adjust = [&](int rank, nccl::Dependencies& dependencies) {
    dependencies.pid = rank == 1 ? process.pid() : ::getpid();
  };
  const auto errors = ranks.errors([&](ProcessGroup& group) {
    RankWorkspace work(group);
    group.all_reduce(work.range(), *work.stream);
    group.barrier_on_host();
    if (group.rank() == 1) {
      ranks.fake().kill(1);
      process.kill();
      throw_when_failed(group);
    }
    group.all_reduce(work.range(), *work.stream);
  });
  for (const std::size_t rank : {0, 2}) expect_error<PeerLost>(errors[rank], 1, "rank 1");
}

/// Containers of one host share its boot id, but not its process ids. The watchdog checks rank 1 before rank 2.
TEST(NcclLifetime, ProcessIdOfAnotherContainerIsNotWatched) {
  NcclRanks ranks(3);
  IdleProcess in_another_container;
  const pid_t ended = in_another_container.pid();
  in_another_container.kill();
  IdleProcess process;
  ranks.adjust = [&](int rank, nccl::Dependencies& dependencies) {
    dependencies.pid = rank == 0 ? ::getpid() : rank == 1 ? ended : process.pid();
    dependencies.namespaces = rank == 1 ? "another container" : "container";
  };
  const auto errors = ranks.errors([&](ProcessGroup& group) {
    RankWorkspace work(group);
    group.all_reduce(work.range(), *work.stream);
    group.barrier_on_host();
    if (group.rank() == 2) process.kill();
    throw_when_failed(group);
  });
  for (const std::exception_ptr& error : errors) expect_error<PeerLost>(error, 2, "rank 2");
}

/// Runs two ranks that capture a graph; rank 1 then leaves, so that rank 0 fails, and keeps its graph for a while.
void fail_with_a_live_graph(NcclRanks& ranks) {
  ranks.adjust = abort_fast;
  const auto errors = tests::errors_of_threads(
      2,
      [&](ProcessGroup& group) {
        tests::FakeGpu& gpu = ranks.device(group.rank());
        const auto stream = gpu.make_stream(kernels::StreamMode::asynchronous);
        group.barrier(*stream);  // connects the ranks
        const auto graph = gpu.record(*stream, [&] { group.barrier(*stream); });
        stream->synchronize(Deadline::after(std::chrono::seconds(60)));
        if (group.rank() == 1) return;
        group.replay(*stream, [&] { graph->enqueue(*stream); });
        stream->synchronize(Deadline::after(std::chrono::seconds(60)));
        std::this_thread::sleep_for(3 * kAbort);
        group.throw_if_failed();
      },
      [&](int rank) { return ranks.join_on_callers_streams(rank); });
  expect_error<PeerLost>(errors[0]);
  EXPECT_FALSE(errors[1]);
}

TEST(NcclLifetime, RevokeEndsAGroupWhoseGraphLives) {
  NcclRanks ranks(2, kLifetimeTimeout);
  fail_with_a_live_graph(ranks);
  EXPECT_THAT(ranks.exit_messages(), IsEmpty());
}

TEST(NcclLifetime, RankExitsIfItsGraphLivesAndNcclCannotRevoke) {
  NcclRanks ranks(2, kLifetimeTimeout, {.version = 22700});
  fail_with_a_live_graph(ranks);
  EXPECT_THAT(ranks.exit_messages(), SizeIs(1));
}

/// An abort after the revoke would free what the graph uses.
TEST(NcclLifetime, RevokeAfterAnErrorOfNcclSparesALiveGraph) {
  NcclRanks ranks(2);
  const auto errors = tests::errors_of_threads(
      2,
      [&](ProcessGroup& group) {
        tests::FakeGpu& gpu = ranks.device(group.rank());
        const auto stream = gpu.make_stream(kernels::StreamMode::asynchronous);
        group.barrier(*stream);  // connects the ranks
        const auto graph = gpu.record(*stream, [&] { group.barrier(*stream); });
        stream->synchronize(Deadline::after(std::chrono::seconds(60)));
        group.barrier_on_host();
        if (group.rank() == 1) {
          ranks.fake().fail(0, ncclRemoteError);
          throw_when_failed(group);
        }
        group.replay(*stream, [&] { graph->enqueue(*stream); });
        stream->synchronize(Deadline::after(std::chrono::seconds(60)));
        std::this_thread::sleep_for(std::chrono::milliseconds(500));  // for the stop
        group.throw_if_failed();
      },
      [&](int rank) { return ranks.join_on_callers_streams(rank); });
  expect_error<PeerLost>(errors[0], -1, "remote error");
  expect_error<PeerLost>(errors[1]);
  EXPECT_THAT(ranks.exit_messages(), IsEmpty());
}

TEST(NcclLifetime, ExitsIfTheRevokeHangs) {
  NcclRanks ranks(2, kLifetimeTimeout, {.revokes_hang = true});
  fail_with_a_live_graph(ranks);
  EXPECT_THAT(ranks.exit_messages(), ElementsAre(HasSubstr("abort of NCCL did not end")));
}

/// A revoke ends only what was launched before it.
TEST(NcclLifetime, StopWaitsForALaunchInProgress) {
  NcclRanks ranks(2, kLifetimeTimeout);
  const auto errors = tests::errors_of_threads(
      2,
      [&](ProcessGroup& group) {
        const auto stream = ranks.device(group.rank()).make_stream(kernels::StreamMode::asynchronous);
        group.barrier(*stream);  // connects the ranks
        const auto graph = ranks.device(group.rank()).record(*stream, [&] { group.barrier(*stream); });
        stream->synchronize(Deadline::after(std::chrono::seconds(60)));
        if (group.rank() == 1) return;  // so that rank 0's collective fails
        EXPECT_THROW(group.replay(*stream,
                                  [&] {
                                    EXPECT_THROW(
                                        while (true) {
                                          group.throw_if_failed();
                                          std::this_thread::yield();
                                        },
                                        PeerLost);
                                    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // for the revoke
                                    graph->enqueue(*stream);
                                  }),
                     PeerLost);
        stream->synchronize(Deadline::after(std::chrono::seconds(20)));
      },
      [&](int rank) { return ranks.join_on_callers_streams(rank); });
  for (const std::exception_ptr& error : errors) EXPECT_FALSE(error);
  EXPECT_THAT(ranks.exit_messages(), IsEmpty());
}

TEST(NcclLifetime, ExitsIfTheAbortHangs) {
  NcclRanks ranks(2, kLifetimeTimeout, {.aborts_hang = true});
  ranks.adjust = abort_fast;
  std::atomic<bool> waiting{true};
  const auto errors = ranks.errors([&](ProcessGroup& group) {
    RankWorkspace work(group);
    try {
      if (group.rank() == 0) group.all_reduce(work.range(), *work.stream);
    } catch (...) {
      waiting = false;
      throw;
    }
    while (group.rank() == 1 && waiting) std::this_thread::sleep_for(kLifetimeTimeout / 10);
  });
  expect_error<Timeout>(errors[0], 1, "all_reduce 1");
  EXPECT_THAT(ranks.exit_messages(),
              Contains(AllOf(HasSubstr("abort of NCCL did not end"), HasSubstr("all_reduce 1"))));
}

TEST(NcclLifetime, ExitsIfTheAbortAfterAFailedJoinHangs) {
  NcclRanks ranks(2, kLifetimeTimeout, {.init_fails_for = 1, .aborts_hang = true});
  ranks.adjust = abort_fast;
  const auto errors = ranks.errors([](ProcessGroup&) {});
  expect_error<Timeout>(errors[0]);
  EXPECT_THAT(ranks.exit_messages(), ElementsAre(HasSubstr("NCCL did not connect the 2 ranks in time")));
}

/// NCCL's destroy waits for the threads of peers, which may leave much later.
TEST(NcclLifetime, RankLeavesBeforeItsPeers) {
  NcclRanks ranks(2);
  ranks.adjust = abort_fast;
  std::future<void> first = std::async(std::launch::async, [&] {
    const auto group = ranks.join(0);
    RankWorkspace work(*group);
    group->all_reduce(work.range(), *work.stream);
  });
  {
    const auto group = ranks.join(1);
    RankWorkspace work(*group);
    group->all_reduce(work.range(), *work.stream);
    EXPECT_EQ(first.wait_for(20 * kAbort), std::future_status::ready);
  }
  first.get();
  EXPECT_THAT(ranks.exit_messages(), IsEmpty());
}

}  // namespace
}  // namespace gradring::comm
