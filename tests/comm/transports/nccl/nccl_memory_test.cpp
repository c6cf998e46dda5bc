// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "comm/transport/error.h"
#include "tests/comm/support/desync.h"
#include "tests/comm/support/expect_error.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/support/ranks.h"
#include "tests/comm/transports/nccl/nccl_ranks.h"

namespace gradring::comm {
namespace {

using tests::expect_error;
using tests::NcclRanks;

TEST(NcclMemory, IsZeroed) {
  NcclRanks ranks(3);
  ranks.run([&](ProcessGroup& group) {
    tests::RankWorkspace work(group);
    for (std::size_t i = 0; i < 1000; ++i) tests::require(work.segment->as<float>()[i] == 0, "memory is not zeroed");
  });
}

TEST(NcclMemory, MayOutliveItsTransport) {
  NcclRanks ranks(1);
  std::unique_ptr<Segment> segment;
  ranks.run([&](ProcessGroup& group) { segment = group.allocate(100); });
  segment->as<char>()[99] = 1;
  segment.reset();
}

TEST(NcclMemory, AllowsZeroBytes) {
  NcclRanks ranks(2);
  ranks.run([](ProcessGroup& group) { EXPECT_EQ(group.allocate(0)->size(), 0u); });
}

/// An evaluation may allocate, and a run may have thousands.
TEST(NcclMemory, KeepsFewKeysInTheStore) {
  NcclRanks ranks(3);
  ranks.run([](ProcessGroup& group) {
    for (std::size_t i = 0; i < 2 * tests::RecordingStore::kMostEntries; ++i) group.allocate(4);
  });
}

TEST(NcclMemory, ReportsDifferentSizes) {
  NcclRanks ranks(2);
  const auto errors =
      ranks.errors([](ProcessGroup& group) { group.allocate(1024u * static_cast<unsigned>(1 + group.rank())); });
  tests::expect_all_desync(errors, {"1024", "2048"});
}

TEST(NcclMemory, ReportsARankThatHasLeft) {
  NcclRanks ranks(2);
  const auto errors = ranks.errors([](ProcessGroup& group) {
    if (group.rank() == 0) group.allocate(64);
  });
  expect_error<PeerLost>(errors[0]);
  EXPECT_FALSE(errors[1]);
}

}  // namespace
}  // namespace gradring::comm
