// SPDX-License-Identifier: Apache-2.0
// Figures of traces whose answer is known, because they are made by hand.
#include <gmock/gmock.h>

#include "train/records/trace/step_timeline.h"
#include "train/records/trace/trace_summary.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::Pair;

constexpr std::int64_t kMs = 1'000'000;

/// One step of a rank, which begins at 0: data, forward, backward with a bucket that is ready at `ready`, optimizer. Its
/// sum ends at `summed` on every rank.
struct Rank {
  std::int64_t late = 0;  ///< ms before it begins
  std::int64_t backward = 4;
  std::int64_t summed = 10;
};

void add_rank(TraceFile& file, int number, const Rank& rank) {
  const auto add = [&](int track, const char* category, std::int64_t begin, std::int64_t end) -> TraceSlice& {
    return file.slices.emplace_back(TraceSlice{.rank = number,
                                               .track = track,
                                               .category = category,
                                               .name = category,
                                               .begin = begin * kMs,
                                               .end = end * kMs});
  };
  const std::int64_t ready = rank.late + 1 + 2 + rank.backward;
  file.ranks.push_back(number);
  add(1, "step", 0, rank.summed + 2).step = 7;
  if (rank.late > 0) add(1, "fault", 0, rank.late);
  add(1, "data", rank.late, rank.late + 1);
  add(1, "forward", rank.late + 1, rank.late + 3);
  add(1, "forward", rank.late + 1, rank.late + 2);  // a plan within
  add(1, "backward", rank.late + 3, rank.summed);
  add(1, "wait", ready, rank.summed);
  add(1, "optimizer", rank.summed, rank.summed + 1);
  add(2, "bucket", ready, rank.summed).ready = ready * kMs;
  add(2, "collective", ready, rank.summed).collective = 3;
}

TraceFile file_of(const std::vector<Rank>& ranks) {
  TraceFile file;
  file.world_size = static_cast<int>(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) add_rank(file, static_cast<int>(i), ranks[i]);
  return file;
}

std::map<std::string, double> in_ms(const std::map<std::string, std::int64_t>& path) {
  std::map<std::string, double> ms;
  for (const auto& [category, ns] : path) ms[category] = static_cast<double>(ns) / kMs;
  return ms;
}

TEST(StepTimeline, CutsAStepIntoWhatItsThreadDid) {
  const auto steps = timelines_of(file_of({Rank{}}));
  ASSERT_EQ(steps.size(), 1u);
  const RankStep& step = steps.at(7).at(0);
  EXPECT_THAT(in_ms(step.totals()), ElementsAre(Pair("backward", 4), Pair("data", 1), Pair("forward", 2),
                                                Pair("optimizer", 1), Pair("other", 1), Pair("wait", 3)));
  EXPECT_EQ(step.communication(), 3 * kMs);
}

TEST(CriticalPath, LeadsThroughTheRankThatCameLast) {
  const auto steps = timelines_of(file_of({Rank{.summed = 41}, Rank{.summed = 41}, Rank{.late = 30, .summed = 41}}));
  EXPECT_THAT(in_ms(critical_path(steps.at(7))),
              ElementsAre(Pair("backward", 4), Pair("communication", 4), Pair("data", 1), Pair("fault", 30),
                          Pair("forward", 2), Pair("optimizer", 1), Pair("other", 1)));
}

TEST(Straggler, IsTheLastToTheCollectivesWithItsCause) {
  const auto late = timelines_of(file_of({Rank{.summed = 41}, Rank{.late = 30, .summed = 41}, Rank{.summed = 41}}));
  const StepStraggler straggler = straggler_of(late.at(7));
  EXPECT_EQ(straggler.rank, 1);
  EXPECT_EQ(straggler.delay, 30 * kMs);
  EXPECT_EQ(straggler.cause, "fault");
  EXPECT_EQ(straggler.cause_delay, 30 * kMs);
  const auto slow = timelines_of(file_of({Rank{.backward = 9, .summed = 20}, Rank{.summed = 20}}));
  EXPECT_EQ(straggler_of(slow.at(7)).cause, "backward");
  EXPECT_EQ(straggler_of(slow.at(7)).delay, 5 * kMs);
  EXPECT_EQ(straggler_of(timelines_of(file_of({Rank{}})).at(7)).rank, -1) << "one rank waits for nobody";
}

TEST(TraceSummary, SaysWhatIsHidden) {
  TraceFile file = file_of({Rank{}, Rank{}});
  EXPECT_EQ(summarize(file, "t").mean.overlap(), 0) << "all communication is exposed";
  for (TraceSlice& slice : file.slices)
    if (slice.category == "wait") slice.begin += 2 * kMs;  // of 3 ms
  const TraceSummary summary = summarize(file, "t");
  EXPECT_NEAR(summary.mean.overlap().value(), 2.0 / 3, 1e-9);
  EXPECT_NEAR(summary.mean.exposed, 1e-3, 1e-9);
  EXPECT_NEAR(summary.mean.compute, 9e-3, 1e-9);
  EXPECT_NEAR(summary.mean.seconds, 12e-3, 1e-9);
}

}  // namespace
}  // namespace gradring::train
