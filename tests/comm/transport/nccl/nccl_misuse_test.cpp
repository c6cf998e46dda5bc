// SPDX-License-Identifier: Apache-2.0
// Each misuse of NCCL that the fake must catch, planted: without these, transport tests that pass would mean little.
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "comm/transport/nccl/environment.h"
#include "tests/support/fake_nccl/fake_gpu.h"
#include "tests/support/fake_nccl/fake_nccl.h"

namespace gradring::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::chrono::seconds kMisuseTimeout(30);
constexpr std::chrono::milliseconds kHangs(100);  // what does not return in this time is taken to hang

/// Two ranks on the fake NCCL, with a GPU, a stream and a buffer each, driven by one thread.
struct TwoRanks {
  struct Setup {
    FakeNccl::Behaviour behaviour = {};
    bool make_current = true;
  };
  TwoRanks() : TwoRanks(Setup{}) {}
  explicit TwoRanks(const Setup& setup) : nccl(setup.behaviour, misuse) {
    ncclUniqueId id{};
    api[0].get_unique_id(&id);
    for (const int rank : {0, 1}) {
      FakeGpu::make_current(setup.make_current ? rank : 0);
      init(rank, id, 0);
    }
    FakeGpu::make_current(0);
  }

  ncclResult_t init(int rank, const ncclUniqueId& id, int blocking) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking;
    return api[rank].comm_init_rank_config(&comm[rank], 2, id, rank, &config);
  }
  /// The state of a rank's communicator when it is no longer in progress, or ncclInProgress if it stays so.
  ncclResult_t settle(int rank) {
    ncclResult_t state = ncclInProgress;
    for (int poll = 0; poll < 10 && state == ncclInProgress; ++poll) api[rank].comm_get_async_error(comm[rank], &state);
    return state;
  }
  ncclResult_t send(int rank, const float* from) {
    return api[rank].send(from, 8, ncclFloat32, 1 - rank, comm[rank], handle(rank));
  }
  ncclResult_t receive(int rank, float* to) {
    return api[rank].recv(to, 8, ncclFloat32, 1 - rank, comm[rank], handle(rank));
  }
  /// Rank 0 sends `from`, and rank 1 receives it in `to`, which is enqueued when it returns.
  void exchange(const float* from, float* to) {
    begin_exchange(from, to);
    ASSERT_EQ(settle(0), ncclSuccess);
    ASSERT_EQ(settle(1), ncclSuccess);
  }
  void begin_exchange(const float* from, float* to) {
    ASSERT_EQ(settle(0), ncclSuccess);
    ASSERT_EQ(settle(1), ncclSuccess);
    group(0, [&] { EXPECT_EQ(send(0, from), ncclSuccess); });
    group(1, [&] { EXPECT_EQ(receive(1, to), ncclSuccess); });
  }
  template <class Calls>
  ncclResult_t group(int rank, const Calls& calls) {
    api[rank].group_start();
    calls();
    return api[rank].group_end();
  }
  void synchronize() {
    for (const auto& one : stream) one->synchronize(Deadline::after(kMisuseTimeout));
  }
  /// What is noted first.
  std::string noted() {
    std::vector<std::string> texts;
    poll_until([&] { return !(texts = misuse.take()).empty(); }, Deadline::after(kMisuseTimeout));
    return texts.empty() ? "" : texts.front();
  }
  cudaStream_t handle(int rank) { return static_cast<cudaStream_t>(stream[rank]->native_handle()); }
  std::string last_error(int rank) { return api[rank].get_last_error(comm[rank]); }

  MisuseLog misuse;
  FakeGpu gpu[2]{{0, misuse}, {1, misuse}};
  std::unique_ptr<kernels::Stream> stream[2]{gpu[0].make_stream(kernels::StreamMode::asynchronous),
                                             gpu[1].make_stream(kernels::StreamMode::asynchronous)};
  float memory[2][16] = {};
  ncclComm_t comm[2] = {};
  FakeNccl nccl;  // last: its destructor ends what hangs on the streams
  comm::nccl::Api api[2]{nccl.api(0), nccl.api(1)};
};

/// Whether `call` still runs after a while; it must end when `end` is called.
bool hangs(const std::function<void()>& call, const std::function<void()>& end) {
  auto running = std::async(std::launch::async, call);
  const bool hung = running.wait_for(kHangs) == std::future_status::timeout;
  end();
  EXPECT_EQ(running.wait_for(kMisuseTimeout), std::future_status::ready);
  return hung;
}

TEST(NcclMisuse, CorrectUseIsAccepted) {
  TwoRanks ranks;
  ranks.memory[0][7] = 3;
  ranks.exchange(ranks.memory[0], ranks.memory[1]);
  ranks.synchronize();
  EXPECT_EQ(ranks.memory[1][7], 3);
  EXPECT_THAT(ranks.misuse.take(), IsEmpty());
}

TEST(NcclMisuse, NotesMixedRegistration) {
  TwoRanks ranks;
  ranks.nccl.comm_register(ranks.memory[0], sizeof ranks.memory[0]);
  ranks.exchange(ranks.memory[0] + 4, ranks.memory[1]);
  EXPECT_THAT(ranks.noted(), HasSubstr("mixed registration: rank 0 sends registered memory"));
}

TEST(NcclMisuse, AcceptsRegistrationOnBothSides) {
  TwoRanks ranks;
  for (auto& memory : ranks.memory) ranks.nccl.comm_register(memory, sizeof memory);
  ranks.exchange(ranks.memory[0], ranks.memory[1]);
  ranks.synchronize();
  EXPECT_THAT(ranks.misuse.take(), IsEmpty());
}

/// Captures an exchange from memory of ncclMemAlloc to other memory, and enqueues the two graphs.
void enqueue_captured_exchange(TwoRanks& ranks) {
  auto* const exportable = static_cast<float*>(ranks.nccl.mem_alloc(8 * sizeof(float)));
  std::unique_ptr<kernels::Recording> second;
  const auto first = ranks.gpu[0].record(*ranks.stream[0], [&] {
    second = ranks.gpu[1].record(*ranks.stream[1], [&] { ranks.exchange(exportable, ranks.memory[1]); });
  });
  first->enqueue(*ranks.stream[0]);
  second->enqueue(*ranks.stream[1]);
}

TEST(NcclMisuse, NotesRegistrationByGraphs) {
  TwoRanks ranks;
  enqueue_captured_exchange(ranks);
  EXPECT_THAT(ranks.noted(), HasSubstr("mixed registration"));
}

TEST(NcclMisuse, TransportKeepsGraphsFromRegistering) {
  TwoRanks ranks;
  comm::nccl::Dependencies dependencies;
  dependencies.set_default_environment = [&](const std::string& name, const std::string& value) {
    ranks.nccl.set_environment(name, value);
  };
  comm::nccl::set_environment({comm::nccl::RankInfo{}}, 0, dependencies);
  enqueue_captured_exchange(ranks);
  ranks.synchronize();
  EXPECT_THAT(ranks.misuse.take(), IsEmpty());
}

TEST(NcclMisuse, NotesWorkBehindAGroupInProgress) {
  TwoRanks ranks;
  ranks.begin_exchange(ranks.memory[0], ranks.memory[1]);
  ranks.stream[1]->enqueue_zero(ranks.memory[1], sizeof(float));
  EXPECT_THAT(ranks.noted(), HasSubstr("behind an NCCL group that is still in progress"));
}

TEST(NcclMisuse, RefusesAGroupWhileOneIsInProgress) {
  TwoRanks ranks;
  ranks.begin_exchange(ranks.memory[0], ranks.memory[1]);
  ranks.group(0, [&] { EXPECT_EQ(ranks.send(0, ranks.memory[0]), ncclInvalidArgument); });
  EXPECT_THAT(ranks.last_error(0), HasSubstr("before the previous operation returned ncclSuccess"));
}

TEST(NcclMisuse, BlockingInitHangsUntilAllRanksCall) {
  TwoRanks ranks;
  ncclUniqueId id{};
  ranks.api[0].get_unique_id(&id);
  EXPECT_TRUE(hangs(
      [&] {
        FakeGpu::make_current(0);
        EXPECT_EQ(ranks.init(0, id, NCCL_CONFIG_UNDEF_INT), ncclSuccess);
      },
      [&] {
        FakeGpu::make_current(1);
        ranks.init(1, id, 1);
      }));
}

TEST(NcclMisuse, BlockingGroupHangsUntilThePeerConnects) {
  TwoRanks ranks;
  ncclUniqueId id{};
  ranks.api[0].get_unique_id(&id);
  FakeGpu::make_current(1);
  ranks.init(1, id, 0);
  FakeGpu::make_current(0);
  ranks.init(0, id, 1);
  ASSERT_EQ(ranks.settle(1), ncclSuccess);
  EXPECT_TRUE(hangs([&] { ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); }); },
                    [&] { ranks.group(1, [&] { ranks.receive(1, ranks.memory[1]); }); }));
}

TEST(NcclMisuse, RefusesAnUninitializedConfig) {
  TwoRanks ranks;
  ncclUniqueId id{};
  ranks.api[0].get_unique_id(&id);
  ncclConfig_t config{};
  EXPECT_EQ(ranks.api[0].comm_init_rank_config(&ranks.comm[0], 2, id, 0, &config), ncclInvalidArgument);
  EXPECT_EQ(ranks.init(0, id, 7), ncclInvalidArgument);
}

TEST(NcclMisuse, RefusesBlockingAndOtherCommunicatorsInOneGroup) {
  TwoRanks ranks;
  const ncclComm_t other = ranks.comm[0];
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ncclUniqueId id{};
  ranks.api[0].get_unique_id(&id);
  FakeGpu::make_current(1);
  ranks.init(1, id, 0);
  FakeGpu::make_current(0);
  ranks.init(0, id, 1);
  EXPECT_EQ(ranks.group(0,
                        [&] {
                          ranks.send(0, ranks.memory[0]);
                          ranks.comm[0] = other;
                          ranks.send(0, ranks.memory[0]);
                        }),
            ncclInvalidArgument);
}

TEST(NcclMisuse, NotesOverlappingBuffers) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.group(0, [&] {
    ranks.send(0, ranks.memory[0]);
    ranks.receive(0, ranks.memory[0] + 7);
  });
  EXPECT_THAT(ranks.noted(), HasSubstr("a buffer that the same group uses again"));
}

TEST(NcclMisuse, AcceptsTwoSendsOfOneBuffer) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.group(0, [&] {
    ranks.send(0, ranks.memory[0]);
    ranks.send(0, ranks.memory[0]);
    ranks.receive(0, ranks.memory[0] + 8);
  });
  EXPECT_THAT(ranks.misuse.take(), IsEmpty());
}

TEST(NcclMisuse, RefusesTwoRanksOnTheCurrentDevice) {
  TwoRanks ranks({.make_current = false});
  for (const int rank : {0, 1}) {
    EXPECT_EQ(ranks.settle(rank), ncclInvalidUsage);
    EXPECT_THAT(ranks.last_error(rank), HasSubstr("Duplicate GPU detected"));
  }
}

TEST(NcclMisuse, RefusesAStreamOfAnotherDevice) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  std::swap(ranks.stream[0], ranks.stream[1]);
  ranks.group(0, [&] { EXPECT_EQ(ranks.send(0, ranks.memory[0]), ncclUnhandledCudaError); });
  EXPECT_THAT(ranks.last_error(0), HasSubstr("stream of device 1, communicator of device 0"));
}

TEST(NcclMisuse, FirstGroupStaysInProgressWithoutThePeer) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); });
  EXPECT_EQ(ranks.settle(0), ncclInProgress);
  ASSERT_EQ(ranks.settle(1), ncclSuccess);
  ranks.group(1, [&] { ranks.receive(1, ranks.memory[1]); });
  EXPECT_EQ(ranks.settle(0), ncclSuccess);
}

TEST(NcclMisuse, FirstCollectiveStaysInProgressWithoutAllRanks) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.group(0, [&] {
    ranks.api[0].all_reduce(ranks.memory[0], ranks.memory[0], 8, ncclFloat32, ncclSum, ranks.comm[0], ranks.handle(0));
  });
  EXPECT_EQ(ranks.settle(0), ncclInProgress);
}

TEST(NcclMisuse, NotesCallsFromAnotherThreadDuringCapture) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.gpu[0].record(*ranks.stream[0],
                      [&] { std::thread([&] { ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); }); }).join(); });
  EXPECT_THAT(ranks.noted(), HasSubstr("from another thread than the capturing one"));
}

TEST(NcclMisuse, AbortHangsWhileAGraphLives) {
  TwoRanks ranks;
  ranks.exchange(ranks.memory[0], ranks.memory[1]);
  std::unique_ptr<kernels::Recording> graph;
  graph = ranks.gpu[0].record(*ranks.stream[0], [&] {
    ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); });
    ASSERT_EQ(ranks.settle(0), ncclSuccess);
  });
  ranks.nccl.kill(1);  // no peer is waited for
  EXPECT_TRUE(hangs([&] { ranks.api[0].comm_abort(ranks.comm[0]); }, [&] { graph.reset(); }));
}

TEST(NcclMisuse, FinalizeStaysInProgressWhileAGraphLives) {
  TwoRanks ranks;
  ranks.exchange(ranks.memory[0], ranks.memory[1]);
  ranks.synchronize();
  auto graph = ranks.gpu[0].record(*ranks.stream[0], [&] {
    ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); });
    ASSERT_EQ(ranks.settle(0), ncclSuccess);
  });
  ranks.api[0].comm_finalize(ranks.comm[0]);
  EXPECT_EQ(ranks.settle(0), ncclInProgress);
  graph.reset();
  EXPECT_EQ(ranks.settle(0), ncclSuccess);
}

TEST(NcclMisuse, FinalizeStaysInProgressUntilOperationsEnd) {
  TwoRanks ranks;
  ranks.exchange(ranks.memory[0], ranks.memory[1]);  // connects the ranks
  ranks.synchronize();
  ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); });
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.api[0].comm_finalize(ranks.comm[0]);
  EXPECT_EQ(ranks.settle(0), ncclInProgress);
}

TEST(NcclMisuse, DestroyAndAbortHangUntilConnectedPeersAreFreed) {
  for (const bool aborts : {false, true}) {
    TwoRanks ranks;
    ranks.exchange(ranks.memory[0], ranks.memory[1]);
    ranks.synchronize();
    const auto& free = aborts ? ranks.api[0].comm_abort : ranks.api[0].comm_destroy;
    EXPECT_TRUE(hangs([&] { free(ranks.comm[0]); }, [&] { ranks.api[1].comm_destroy(ranks.comm[1]); }));
  }
}

TEST(NcclMisuse, RevokedCommunicatorTakesNoOperations) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.api[0].comm_revoke(ranks.comm[0], NCCL_REVOKE_DEFAULT);
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.group(0, [&] { EXPECT_EQ(ranks.send(0, ranks.memory[0]), ncclInvalidUsage); });
  EXPECT_EQ(ranks.api[0].comm_finalize(ranks.comm[0]), ncclInvalidUsage);
}

TEST(NcclMisuse, NotesAFreeWithAnotherCurrentDevice) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(1), ncclSuccess);
  ranks.api[1].comm_abort(ranks.comm[1]);
  EXPECT_THAT(ranks.noted(), HasSubstr("frees its communicator of device 1 while device 0 is current"));
}

TEST(NcclMisuse, NotesUseOfAFreedCommunicator) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.api[0].comm_abort(ranks.comm[0]);
  ranks.settle(0);
  EXPECT_THAT(ranks.noted(), HasSubstr("a communicator that was freed"));
}

TEST(NcclMisuse, NotesACallOutsideOfAGroup) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.send(0, ranks.memory[0]);
  EXPECT_THAT(ranks.noted(), HasSubstr("outside of a group"));
}

TEST(NcclMisuse, NotesMessagesOfDifferentSizes) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ASSERT_EQ(ranks.settle(1), ncclSuccess);
  ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); });
  ranks.group(1, [&] { ranks.api[1].recv(ranks.memory[1], 9, ncclFloat32, 0, ranks.comm[1], ranks.handle(1)); });
  ranks.settle(0);
  ranks.settle(1);
  EXPECT_THAT(ranks.noted(), HasSubstr("rank 1 receives 9 elements from rank 0, which sends 8"));
}

}  // namespace
}  // namespace gradring::tests
