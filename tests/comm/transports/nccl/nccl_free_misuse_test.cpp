// SPDX-License-Identifier: Apache-2.0
// Misuse where a communicator ends, planted.
#include <gmock/gmock.h>

#include "tests/comm/transports/nccl/two_ranks.h"

namespace gradring::tests {
namespace {

using ::testing::HasSubstr;

TEST(NcclMisuse, DestroyAndAbortHangWhileAGraphLives) {
  for (const bool aborts : {false, true}) {
    TwoRanks ranks;
    ranks.exchange(ranks.memory[0], ranks.memory[1]);
    ranks.synchronize();
    std::unique_ptr<kernels::Recording> graph;
    graph = ranks.gpu[0].record(*ranks.stream[0], [&] {
      ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); });
      ASSERT_EQ(ranks.settle(0), ncclSuccess);
    });
    ranks.nccl.kill(1);  // no peer is waited for
    const auto& free = aborts ? ranks.api[0].comm_abort : ranks.api[0].comm_destroy;
    EXPECT_TRUE(hangs([&] { free(ranks.comm[0]); }, [&] { graph.reset(); }));
  }
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

TEST(NcclMisuse, BlockingFinalizeHangsUntilOperationsEnd) {
  TwoRanks ranks;
  ranks.init_with_a_blocking_rank();
  ASSERT_EQ(ranks.settle(1), ncclSuccess);
  ranks.group(1, [&] { ranks.receive(1, ranks.memory[1]); });
  ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); });  // connects the ranks
  ASSERT_EQ(ranks.settle(1), ncclSuccess);
  ranks.synchronize();
  ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); });
  EXPECT_TRUE(hangs([&] { ranks.api[0].comm_finalize(ranks.comm[0]); },
                    [&] {
                      ranks.group(1, [&] { ranks.receive(1, ranks.memory[1]); });
                      EXPECT_EQ(ranks.settle(1), ncclSuccess);
                    }));
}

TEST(NcclMisuse, RejectsASecondFinalize) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  EXPECT_EQ(ranks.api[0].comm_finalize(ranks.comm[0]), ncclInProgress);
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  EXPECT_EQ(ranks.api[0].comm_finalize(ranks.comm[0]), ncclInvalidArgument);
  EXPECT_THAT(ranks.last_error(0), HasSubstr("finalized twice"));
}

TEST(NcclMisuse, RejectsASecondRevoke) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  EXPECT_EQ(ranks.api[0].comm_revoke(ranks.comm[0], NCCL_REVOKE_DEFAULT), ncclInProgress);
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  EXPECT_EQ(ranks.api[0].comm_revoke(ranks.comm[0], NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
}

TEST(NcclMisuse, RejectsARevokeOfAFinalizedCommunicator) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  EXPECT_EQ(ranks.api[0].comm_finalize(ranks.comm[0]), ncclInProgress);
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  EXPECT_EQ(ranks.api[0].comm_revoke(ranks.comm[0], NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
}

TEST(NcclMisuse, DestroyAndAbortHangUntilConnectedPeersAreFreed) {
  for (const bool aborts : {false, true}) {
    TwoRanks ranks;
    ranks.exchange(ranks.memory[0], ranks.memory[1]);
    ranks.synchronize();
    const auto& free = aborts ? ranks.api[0].comm_abort : ranks.api[0].comm_destroy;
    EXPECT_TRUE(hangs([&] { free(ranks.comm[0]); },
                      [&] {
                        FakeGpu::make_current(1);
                        ranks.api[1].comm_destroy(ranks.comm[1]);
                      }));
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

TEST(NcclMisuse, RevokeStaysInProgressUntilConnectedPeersEnd) {
  TwoRanks ranks;
  ranks.exchange(ranks.memory[0], ranks.memory[1]);
  ranks.synchronize();
  ranks.api[0].comm_revoke(ranks.comm[0], NCCL_REVOKE_DEFAULT);
  EXPECT_EQ(ranks.settle(0), ncclInProgress);
  ranks.api[1].comm_revoke(ranks.comm[1], NCCL_REVOKE_DEFAULT);
  EXPECT_EQ(ranks.settle(0), ncclSuccess);
}

TEST(NcclMisuse, ErrorOfTheNetworkIsTheStateAfterARevoke) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.nccl.fail(0, ncclRemoteError);
  EXPECT_EQ(ranks.api[0].comm_revoke(ranks.comm[0], NCCL_REVOKE_DEFAULT), ncclInProgress);
  ncclResult_t state = ncclSuccess;
  ranks.api[0].comm_get_async_error(ranks.comm[0], &state);
  EXPECT_EQ(state, ncclInProgress);
  EXPECT_EQ(ranks.settle(0), ncclRemoteError);
}

TEST(NcclMisuse, GraphHangsIfLaunchedAfterARevoke) {
  TwoRanks ranks;
  ranks.exchange(ranks.memory[0], ranks.memory[1]);
  ranks.synchronize();
  auto graph = ranks.gpu[0].record(*ranks.stream[0], [&] {
    ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); });
    ASSERT_EQ(ranks.settle(0), ncclSuccess);
  });
  ranks.nccl.kill(1);  // no peer is waited for
  ranks.api[0].comm_revoke(ranks.comm[0], NCCL_REVOKE_DEFAULT);
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  graph->enqueue(*ranks.stream[0]);
  EXPECT_TRUE(hangs([&] { ranks.synchronize(); }, [&] { ranks.api[0].comm_abort(ranks.comm[0]); }));
  EXPECT_THAT(ranks.noted(), HasSubstr("frees its revoked communicator while a graph refers to it"));
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

}  // namespace
}  // namespace gradring::tests
