// SPDX-License-Identifier: Apache-2.0
// Each misuse of NCCL that the fake must catch, planted: without these, transport tests that pass would mean little.
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <utility>

#include "comm/transports/nccl/rank_info.h"
#include "tests/comm/transports/nccl/two_ranks.h"

namespace gradring::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
  std::map<std::string, std::string> environment;
  comm::nccl::Dependencies dependencies;
  dependencies.set_default_environment = [&](const std::string& name, const std::string& value) {
    environment[name] = value;
  };
  comm::nccl::set_environment({comm::nccl::RankInfo{}}, 0, dependencies);
  TwoRanks ranks({.environment = environment});
  enqueue_captured_exchange(ranks);
  ranks.synchronize();
  EXPECT_THAT(ranks.misuse.take(), IsEmpty());
}

TEST(NcclMisuse, NotesAVariableThatIsSetTooLate) {
  TwoRanks ranks({.environment = {{"NCCL_IB_DISABLE", "1"}}});
  ranks.nccl.set_environment(0, "NCCL_IB_DISABLE", "1");  // as before
  ranks.nccl.set_environment(0, "NCCL_GRAPH_REGISTER", "0");
  EXPECT_EQ(ranks.noted(), "rank 0 sets NCCL_GRAPH_REGISTER after NCCL has read its environment");
  enqueue_captured_exchange(ranks);
  EXPECT_THAT(ranks.noted(), HasSubstr("mixed registration"));
}

TEST(NcclMisuse, NotesWorkBehindAGroupInProgress) {
  TwoRanks ranks;
  kernels::Stream& stream = *ranks.stream[1];
  const auto graph = ranks.gpu[1].record(stream, [&] { stream.enqueue_zero(ranks.memory[1], sizeof(float)); });
  ranks.begin_exchange(ranks.memory[0], ranks.memory[1]);
  stream.enqueue_zero(ranks.memory[1], sizeof(float));
  EXPECT_THAT(ranks.noted(), HasSubstr("work was enqueued behind an NCCL group that is still in progress"));
  graph->enqueue(stream);
  EXPECT_THAT(ranks.noted(), HasSubstr("a graph was launched behind an NCCL group that is still in progress"));
  stream.synchronize(Deadline::after(kMisuseTimeout));
  EXPECT_THAT(ranks.noted(), HasSubstr("a stream was synchronized behind an NCCL group that is still in progress"));
}

TEST(NcclMisuse, RejectsAGroupWhileOneIsInProgress) {
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
  ranks.init_with_a_blocking_rank();
  ASSERT_EQ(ranks.settle(1), ncclSuccess);
  EXPECT_TRUE(hangs([&] { ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); }); },
                    [&] { ranks.group(1, [&] { ranks.receive(1, ranks.memory[1]); }); }));
}

TEST(NcclMisuse, RejectsAnUninitializedConfig) {
  TwoRanks ranks;
  ncclUniqueId id{};
  ranks.api[0].get_unique_id(&id);
  ncclConfig_t config{};
  EXPECT_EQ(ranks.api[0].comm_init_rank_config(&ranks.comm[0], 2, id, 0, &config), ncclInvalidArgument);
  EXPECT_EQ(ranks.init(0, id, 7), ncclInvalidArgument);
}

TEST(NcclMisuse, RejectsBlockingAndOtherCommunicatorsInOneGroup) {
  TwoRanks ranks;
  const ncclComm_t other = ranks.comm[0];
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.init_with_a_blocking_rank();
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

TEST(NcclMisuse, NotesAReductionThatOverlapsItsInput) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.group(0, [&] { ranks.all_reduce(0, ranks.memory[0], ranks.memory[0] + 1); });
  EXPECT_THAT(ranks.noted(), HasSubstr("a buffer that the same group uses again"));
}

TEST(NcclMisuse, NotesASendFromAReducedBuffer) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.group(0, [&] {
    ranks.send(0, ranks.memory[0] + 8);
    ranks.all_reduce(0, ranks.memory[0], ranks.memory[0] + 8);
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

TEST(NcclMisuse, RejectsTwoRanksOnTheCurrentDevice) {
  TwoRanks ranks({.make_current = false});
  for (const int rank : {0, 1}) {
    EXPECT_EQ(ranks.settle(rank), ncclInvalidUsage);
    EXPECT_THAT(ranks.last_error(rank), HasSubstr("Duplicate GPU detected"));
  }
}

TEST(NcclMisuse, RejectsAStreamOfAnotherDevice) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  std::swap(ranks.stream[0], ranks.stream[1]);
  ranks.group(0, [&] { EXPECT_EQ(ranks.send(0, ranks.memory[0]), ncclUnhandledCudaError); });
  EXPECT_THAT(ranks.last_error(0), HasSubstr("stream of device 1, communicator of device 0"));
}

TEST(NcclMisuse, ARejectedCallFailsItsGroup) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  const ncclResult_t end = ranks.group(0, [&] {
    EXPECT_EQ(ranks.send(0, ranks.memory[0]), ncclSuccess);
    std::swap(ranks.stream[0], ranks.stream[1]);
    EXPECT_EQ(ranks.send(0, ranks.memory[0]), ncclUnhandledCudaError);
  });
  EXPECT_EQ(end, ncclUnhandledCudaError);
  EXPECT_EQ(ranks.settle(0), ncclUnhandledCudaError);
  EXPECT_EQ(ranks.nccl.groups(), 0u);
  EXPECT_EQ(ranks.group(0, [] {}), ncclSuccess);  // the next group has no error
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
  ranks.group(0, [&] { ranks.all_reduce(0, ranks.memory[0], ranks.memory[0]); });
  EXPECT_EQ(ranks.settle(0), ncclInProgress);
}

TEST(NcclMisuse, NotesReductionsOfDifferentCounts) {
  TwoRanks ranks;
  for (const int rank : {0, 1}) {
    ASSERT_EQ(ranks.settle(rank), ncclSuccess);
    const std::size_t count = rank == 0 ? 8 : 9;
    ranks.group(rank, [&] { ranks.all_reduce(rank, ranks.memory[rank], ranks.memory[rank], count); });
  }
  EXPECT_EQ(ranks.settle(0), ncclSuccess);
  EXPECT_EQ(ranks.settle(1), ncclSuccess);
  EXPECT_THAT(ranks.noted(), AllOf(HasSubstr("rank 0 reduces 8 f32"), HasSubstr("rank 1 reduces 9 f32")));
}

TEST(NcclMisuse, NotesReductionsOfDifferentTypes) {
  TwoRanks ranks;
  for (const int rank : {0, 1}) {
    ASSERT_EQ(ranks.settle(rank), ncclSuccess);
    ranks.group(rank, [&] {
      float* const data = ranks.memory[rank];
      ranks.api[rank].all_reduce(data, data, 8, rank == 0 ? ncclFloat32 : ncclInt32, ncclSum, ranks.comm[rank],
                                 ranks.handle(rank));
    });
  }
  EXPECT_EQ(ranks.settle(0), ncclSuccess);
  EXPECT_EQ(ranks.settle(1), ncclSuccess);
  EXPECT_THAT(ranks.noted(), AllOf(HasSubstr("rank 0 reduces 8 f32"), HasSubstr("rank 1 reduces 8 i32")));
}

TEST(NcclMisuse, NotesACallOutsideOfAGroup) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.send(0, ranks.memory[0]);
  EXPECT_THAT(ranks.noted(), HasSubstr("outside of a group"));
}

TEST(NcclMisuse, RejectsAnEndWithoutAGroup) {
  TwoRanks ranks;
  EXPECT_EQ(ranks.api[0].group_end(), ncclInvalidUsage);
  EXPECT_EQ(ranks.group(0, [] {}), ncclSuccess);
}

/// Rank 0 sends eight f32; what is noted where rank 1 receives something else.
std::string noted_on_receive(std::size_t count, ncclDataType_t type) {
  TwoRanks ranks;
  EXPECT_EQ(ranks.settle(0), ncclSuccess);
  EXPECT_EQ(ranks.settle(1), ncclSuccess);
  ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); });
  ranks.group(1, [&] { ranks.api[1].recv(ranks.memory[1], count, type, 0, ranks.comm[1], ranks.handle(1)); });
  EXPECT_EQ(ranks.settle(0), ncclSuccess);
  EXPECT_EQ(ranks.settle(1), ncclSuccess);
  return ranks.noted();
}

TEST(NcclMisuse, NotesMessagesOfDifferentSizesOrTypes) {
  EXPECT_EQ(noted_on_receive(9, ncclFloat32), "rank 1 receives 9 f32 from rank 0, which sends 8 f32");
  EXPECT_EQ(noted_on_receive(8, ncclInt32), "rank 1 receives 8 i32 from rank 0, which sends 8 f32");
}

}  // namespace
}  // namespace gradring::tests
