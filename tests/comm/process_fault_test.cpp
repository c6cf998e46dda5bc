// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "comm/transport/error.h"
#include "kernels/host/host_device.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/support/ranks.h"

namespace gradring::comm {
namespace {

using ::testing::HasSubstr;
using tests::Outcome;
using tests::Processes;
using tests::TransportKind;

constexpr std::chrono::seconds kFaultTimeout(50);  // less than Processes::outcome waits
constexpr std::chrono::seconds kShort(2);
constexpr std::size_t kElements = 20'000;
constexpr std::size_t kManyElements = 3'000'000;  // transfers of several milliseconds

/// Runs all_reduce until an error; sets a key in the store after the first one.
void reduce_forever(ProcessGroup& group, Store& store, std::size_t elements = kElements) {
  kernels::HostDevice device;
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  const auto segment = group.allocate(elements * sizeof(float));
  for (;;) {
    group.all_reduce({.segment = segment.get(), .slice = {0, elements}}, *stream);
    store.set("reducing/" + std::to_string(group.rank()), "");
  }
}

/// Faults of ranks that are processes, over each transport.
class ProcessFaults : public ::testing::TestWithParam<TransportKind> {
 protected:
  static std::unique_ptr<ProcessGroup> join(Store& store, const tests::Member& member) {
    return tests::join(GetParam(), store, member);
  }
  static Processes::Body reduces_forever(int world, std::chrono::nanoseconds timeout,
                                         std::size_t elements = kElements) {
    return [=](int rank, Store& store) {
      reduce_forever(*join(store, {.rank = rank, .world_size = world, .timeout = timeout}), store, elements);
    };
  }
};

INSTANTIATE_TEST_SUITE_P(Over, ProcessFaults, ::testing::Values(TransportKind::shared_memory, TransportKind::tcp),
                         [](const auto& test) { return tests::name_of(test.param); });

void wait_until_all_reduce(Processes& processes, int world) {
  for (int rank = 0; rank < world; ++rank)
    processes.store().wait("reducing/" + std::to_string(rank), Deadline::after(kFaultTimeout));
}

TEST_P(ProcessFaults, SurvivorsNameTheKilledProcess) {
  constexpr unsigned kSeed = 99;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 12; ++round) {
    const int world = 2 + round % 3;
    const int victim = static_cast<int>(random() % static_cast<unsigned>(world));
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed << ", round " << round << ", victim " << victim << " of "
                                      << world);
    // In every other round the kill usually hits a transfer.
    Processes processes(world, reduces_forever(world, kFaultTimeout, round % 2 == 0 ? kElements : kManyElements));
    wait_until_all_reduce(processes, world);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    ::kill(processes.pid(victim), SIGKILL);
    for (int rank = 0; rank < world; ++rank) {
      const Outcome outcome = processes.outcome(rank);
      EXPECT_EQ(outcome.kind, rank == victim ? "signal" : "PeerLost") << outcome.message;
      if (rank == victim) continue;
      EXPECT_EQ(outcome.peer, victim) << outcome.message;
      EXPECT_THAT(outcome.message, HasSubstr("process " + std::to_string(processes.pid(victim))));
    }
  }
}

TEST_P(ProcessFaults, NamesTheKilledProcessAndNotOneThatLeftBecauseOfIt) {
  constexpr int kWorld = 3, kVictim = 2;
  // Rank 1 loses the victim in a host call and leaves; only then does rank 0 start its all_reduce.
  Processes processes(kWorld, [](int rank, Store& store) {
    auto group = join(store, {.rank = rank, .world_size = kWorld, .timeout = kFaultTimeout});
    kernels::HostDevice device;
    const auto stream = device.make_stream(kernels::StreamMode::in_place);
    auto segment = group->allocate(kElements * sizeof(float));
    store.set("reducing/" + std::to_string(rank), "");
    if (rank == kVictim) ::pause();
    if (rank == 0) {
      store.wait("left", Deadline::after(kFaultTimeout));
      group->all_reduce({.segment = segment.get(), .slice = {0, kElements}}, *stream);
    }
    try {
      group->barrier_on_host();
    } catch (const PeerLost&) {
      segment.reset();
      group.reset();
      store.set("left", "");
      throw;
    }
  });
  wait_until_all_reduce(processes, kWorld);
  ::kill(processes.pid(kVictim), SIGKILL);
  for (const int rank : {0, 1}) {
    const Outcome outcome = processes.outcome(rank);
    EXPECT_EQ(outcome.kind, "PeerLost") << outcome.message;
    EXPECT_EQ(outcome.peer, kVictim) << outcome.message;
  }
}

TEST_P(ProcessFaults, NamesAllKilledProcesses) {
  constexpr int kWorld = 3;
  Processes processes(kWorld, reduces_forever(kWorld, kFaultTimeout));
  wait_until_all_reduce(processes, kWorld);
  // Stopped, so that rank 0 sees both deaths at once, and no victim sees the other's.
  for (const int rank : {0, 1, 2}) ::kill(processes.pid(rank), SIGSTOP);
  for (const int victim : {1, 2}) ::kill(processes.pid(victim), SIGKILL);
  for (const int victim : {1, 2}) EXPECT_EQ(processes.outcome(victim).kind, "signal");
  ::kill(processes.pid(0), SIGCONT);
  const Outcome outcome = processes.outcome(0);
  EXPECT_EQ(outcome.kind, "PeerLost") << outcome.message;
  EXPECT_GT(outcome.peer, 0) << outcome.message;
  if (GetParam() == TransportKind::tcp) return;  // it reads one connection after the other
  for (const int victim : {1, 2})
    EXPECT_THAT(outcome.message, HasSubstr("process " + std::to_string(processes.pid(victim))));
}

TEST_P(ProcessFaults, TimeoutNamesTheStoppedProcess) {
  constexpr int kWorld = 4;
  for (const int victim : {0, 2}) {
    Processes processes(kWorld, reduces_forever(kWorld, kShort));
    wait_until_all_reduce(processes, kWorld);
    ::kill(processes.pid(victim), SIGSTOP);
    for (int rank = 0; rank < kWorld; ++rank) {
      if (rank == victim) continue;
      const Outcome outcome = processes.outcome(rank);
      EXPECT_EQ(outcome.kind, "Timeout") << outcome.message;
      EXPECT_EQ(outcome.peer, victim) << outcome.message;
    }
    ::kill(processes.pid(victim), SIGCONT);
    const Outcome outcome = processes.outcome(victim);
    EXPECT_EQ(outcome.kind, "Timeout") << "the other ranks have timed out: " << outcome.message;
    EXPECT_EQ(outcome.peer, victim);
  }
}

/// Sockets do not tell whether a process is stopped.
TEST(SharedMemoryFaults, TimeoutNamesAStoppedProcessBeforeASlowOne) {
  constexpr int kVictim = 2;  // rank 1 is slow; rank 0 needs both, and rank 1 first
  Processes processes(3, [](int rank, Store& store) {
    const auto group =
        tests::join(TransportKind::shared_memory, store, {.rank = rank, .world_size = 3, .timeout = kShort});
    const tests::RankWorkspace work(*group);
    store.set("joined/" + std::to_string(rank), "");
    if (rank != 0) ::pause();
    store.wait("stopped", Deadline::after(kFaultTimeout));
    group->all_reduce(work.range(), *work.stream);
  });
  for (int rank = 0; rank < 3; ++rank)
    processes.store().wait("joined/" + std::to_string(rank), Deadline::after(kFaultTimeout));
  ::kill(processes.pid(kVictim), SIGSTOP);
  processes.store().set("stopped", "");
  const Outcome outcome = processes.outcome(0);
  EXPECT_EQ(outcome.kind, "Timeout") << outcome.message;
  EXPECT_EQ(outcome.peer, kVictim) << outcome.message;
}

TEST_P(ProcessFaults, ExitWithoutGoodbyeIsPeerLost) {
  Processes processes(3, [](int rank, Store& store) {
    const auto group = join(store, {.rank = rank, .world_size = 3, .timeout = kFaultTimeout});
    if (rank == 1) ::_exit(7);
    reduce_forever(*group, store);
  });
  for (const int rank : {0, 2}) {
    const Outcome outcome = processes.outcome(rank);
    EXPECT_EQ(outcome.kind, "PeerLost") << outcome.message;
    EXPECT_EQ(outcome.peer, 1);
  }
}

TEST_P(ProcessFaults, AThrowingProcessFailsAllOthers) {
  Processes processes(3, [](int rank, Store& store) {
    const auto group = join(store, {.rank = rank, .world_size = 3, .timeout = kFaultTimeout});
    if (rank == 2) throw std::runtime_error("a planted error");
    reduce_forever(*group, store);
  });
  for (const int rank : {0, 1}) {
    const Outcome outcome = processes.outcome(rank);
    EXPECT_EQ(outcome.kind, "PeerLost") << outcome.message;
    EXPECT_EQ(outcome.peer, 2);
  }
  EXPECT_EQ(processes.outcome(2).message, "a planted error");
}

TEST_P(ProcessFaults, TimeoutNamesMissingRanks) {
  Processes processes(
      2, [](int rank, Store& store) { join(store, {.rank = rank * 2, .world_size = 4, .timeout = kShort}); });
  for (int rank = 0; rank < 2; ++rank) {
    const Outcome outcome = processes.outcome(rank);
    EXPECT_EQ(outcome.kind, "Timeout") << outcome.message;
    EXPECT_EQ(outcome.peer, 1);
    EXPECT_THAT(outcome.message, HasSubstr("rank 1, 3 of a world of 4"));
  }
}

TEST_P(ProcessFaults, RejectsInvalidRanks) {
  Processes processes(1, [](int, Store& store) {
    for (const int rank : {-1, 2})
      EXPECT_THROW(join(store, {.rank = rank, .world_size = 2, .timeout = kFaultTimeout}), InvalidArgument);
    tests::require(!::testing::Test::HasFailure(), "it was accepted");
  });
  EXPECT_EQ(processes.outcome(0).kind, "ok");
}

TEST_P(ProcessFaults, ReportsDifferentElementCounts) {
  Processes processes(2, [](int rank, Store& store) {
    const auto group = join(store, {.rank = rank, .world_size = 2, .timeout = kFaultTimeout});
    kernels::HostDevice device;
    const auto stream = device.make_stream(kernels::StreamMode::in_place);
    const auto segment = group->allocate(1024);
    group->all_reduce({.segment = segment.get(), .slice = {0, static_cast<std::size_t>(64 + rank)}}, *stream);
  });
  for (int rank = 0; rank < 2; ++rank) {
    const Outcome outcome = processes.outcome(rank);
    EXPECT_EQ(outcome.kind, "Desync") << outcome.message;
    EXPECT_EQ(outcome.peer, 1 - rank);
  }
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST_P(ProcessFaults, HoldsOneDescriptorForEachPeerOfAChannel) {
  constexpr int kWorld = 8, kChannels = 2;
  Processes processes(kWorld, [](int rank, Store& store) {
    const int before = open_descriptors();
    const auto group = join(store, {.rank = rank, .world_size = kWorld, .timeout = kFaultTimeout});
    const auto segment = group->allocate(1 << 10);
    const int held = open_descriptors() - before;
    tests::require(held <= kChannels * (kWorld + 1), "a channel holds more: hundreds of ranks would exceed the limit");
  });
  for (int rank = 0; rank < kWorld; ++rank)
    EXPECT_EQ(processes.outcome(rank).kind, "ok") << processes.outcome(rank).message;
}

TEST_P(ProcessFaults, ReleasesDescriptorsAndMemory) {
  const auto mapped = [] {
    std::ifstream maps("/proc/self/maps");
    const std::string text((std::istreambuf_iterator<char>(maps)), {});
    return text.find("memfd:gradring") != std::string::npos;
  };
  Processes processes(2, [&](int rank, Store& store) {
    const int before = open_descriptors();
    for (int round = 0; round < 3; ++round) {
      const auto group = join(
          store, {.rank = rank, .world_size = 2, .timeout = kFaultTimeout, .name = "group" + std::to_string(round)});
      const auto segment = group->allocate(1 << 20);
      tests::require(mapped() == (GetParam() == TransportKind::shared_memory),
                     "the segment is in the wrong kind of memory");
      group->barrier_on_host();
    }
    tests::require(open_descriptors() == before, "a descriptor stayed open");
    tests::require(!mapped(), "memory stayed mapped");
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(processes.outcome(rank).kind, "ok") << processes.outcome(rank).message;
}

}  // namespace
}  // namespace gradring::comm
