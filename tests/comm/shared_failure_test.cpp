// SPDX-License-Identifier: Apache-2.0
// A process group has two transports. A rank that fails in one of them leaves the other, too: there, its peers must name
// the rank that it names, and not take it for the cause.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "comm/transport/error.h"
#include "kernels/host/host_device.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/support/ranks.h"

namespace gradring::comm {
namespace {

using tests::Outcome;
using tests::Processes;
using tests::RankWorkspace;
using tests::TransportKind;

constexpr std::chrono::milliseconds kStoppedTimeout(1500);  // enough to join, also on a busy machine
constexpr std::chrono::seconds kStorePatience(50);          // less than Processes::outcome waits
constexpr int kLeaver = 0;                                  // the last rank is stopped

struct FailureCase {
  TransportKind medium = TransportKind::tcp;
  int world = 3;
  bool on_host = false;  ///< where the leaver times out: in a host call, or else in a collective
  bool lingers = false;  ///< whether it is still a member of the other transport when its peers need it there
};

std::string name_of_case(const ::testing::TestParamInfo<FailureCase>& test) {
  const FailureCase& param = test.param;
  return fmt::format("{}World{}{}{}", tests::name_of(param.medium), param.world,
                     param.on_host ? "HostCall" : "Collective", param.lingers ? "Lingering" : "Gone");
}

class SharedFailure : public ::testing::TestWithParam<FailureCase> {
 protected:
  static void run(int rank, Store& store) {
    const FailureCase& param = GetParam();
    const auto wait_for = [&](const std::string& key) { store.wait(key, Deadline::after(kStorePatience)); };
    auto group = join(param.medium, store, {.rank = rank, .world_size = param.world, .timeout = kStoppedTimeout});
    std::optional<RankWorkspace> work(std::in_place, *group);
    store.set(fmt::format("ready/{}", rank), "");
    const int victim = param.world - 1;
    if (rank == victim) ::pause();
    wait_for(rank == kLeaver ? "stopped" : "left");
    try {
      // The leaver needs only the victim, and nobody but the leaver does.
      if (rank == kLeaver)
        param.on_host ? void(group->broadcast_on_host("", victim))
                      : group->broadcast(work->range(), victim, *work->stream);
      else
        param.on_host ? group->all_reduce(work->range(), *work->stream) : group->barrier_on_host();
    } catch (const CommError&) {
      if (rank == kLeaver && !param.lingers) {
        work.reset();
        group.reset();
      }
      store.set(rank == kLeaver ? "left" : fmt::format("failed/{}", rank), "");
      if (rank == kLeaver && param.lingers)
        for (int other = 0; other < param.world - 1; ++other)
          if (other != kLeaver) wait_for(fmt::format("failed/{}", other));
      throw;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Over, SharedFailure,
                         ::testing::Values(FailureCase{TransportKind::shared_memory, 3, true, false},
                                           FailureCase{TransportKind::tcp, 3, true, false},
                                           FailureCase{TransportKind::shared_memory, 3, false, false},
                                           FailureCase{TransportKind::tcp, 3, false, false},
                                           FailureCase{TransportKind::shared_memory, 4, true, true},
                                           FailureCase{TransportKind::tcp, 4, true, true},
                                           FailureCase{TransportKind::shared_memory, 4, false, true},
                                           FailureCase{TransportKind::tcp, 4, false, true}),
                         name_of_case);

TEST_P(SharedFailure, AllRanksNameTheStoppedProcess) {
  const int world = GetParam().world;
  const int victim = world - 1;
  Processes processes(world, run);
  for (int rank = 0; rank < world; ++rank)
    processes.store().wait(fmt::format("ready/{}", rank), Deadline::after(kStorePatience));
  ::kill(processes.pid(victim), SIGSTOP);
  processes.store().set("stopped", "");
  for (int rank = 0; rank < victim; ++rank) {
    const Outcome outcome = processes.outcome(rank);
    EXPECT_EQ(outcome.kind, "Timeout") << "rank " << rank << ": " << outcome.message;
    EXPECT_EQ(outcome.peer, victim) << "rank " << rank << ": " << outcome.message;
  }
}

}  // namespace
}  // namespace gradring::comm
