// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/trace_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/runtime/trace_track.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::train {
namespace {

constexpr std::int64_t kHour = 3'600'000'000'000;

/// The clocks of ranks whose clock is `ahead` of the machine's.
std::vector<RankClock> compare(const std::vector<std::int64_t>& ahead, bool same_machine) {
  std::vector<RankClock> clocks(ahead.size());
  tests::run_ranks(static_cast<int>(ahead.size()), [&](comm::ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    clocks[rank] = compare_clocks(group, same_machine ? "one" : std::to_string(rank),
                                  [&] { return kernels::TraceTrack::now() + ahead[rank]; });
  });
  return clocks;
}

TEST(RankClock, OfOneMachineIsShared) {
  for (const RankClock& clock : compare({0, 0, 0}, true)) EXPECT_EQ(clock, RankClock());
}

TEST(RankClock, OfOtherMachinesIsFoundWithinItsAccuracy) {
  const std::vector<RankClock> clocks = compare({0, kHour, -kHour}, false);
  EXPECT_EQ(clocks[0], RankClock());
  EXPECT_LE(std::abs(clocks[1].offset_ns + kHour), clocks[1].accuracy_ns);
  EXPECT_LE(std::abs(clocks[2].offset_ns - kHour), clocks[2].accuracy_ns);
  for (const std::size_t rank : {1, 2}) EXPECT_GT(clocks[rank].accuracy_ns, 0);
}

}  // namespace
}  // namespace gradring::train
