// SPDX-License-Identifier: Apache-2.0
#include "train/faults/faulty_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradring::train {
namespace {

/// Asks for a save each time, and keeps the places.
class Recorded final : public RunRequests {
 public:
  RunRequest take() override { return RunRequest::save; }
  void at(const RunPlace& place) override { begun.push_back(place.begun); }

  std::vector<std::int64_t> begun;
};

TEST(FaultyRequests, LetFaultsHappenOnceBeforeTheirStepAndPassTheRestOn) {
  Recorded inner;
  std::vector<std::int64_t> done;
  FaultyRequests faulty(inner,
                        {{.kind = FaultKind::kill, .step = 3},
                         {.kind = FaultKind::delay, .step = 3},
                         {.kind = FaultKind::nan, .step = 2},
                         {.kind = FaultKind::kill, .step = 9}},
                        [&](const PlannedFault& fault) { done.push_back(fault.step); });
  EXPECT_EQ(faulty.take(), RunRequest::save);
  std::vector<bool> nan;
  for (std::int64_t begun = 0; begun < 4; ++begun) {
    faulty.at({.doing = kTraining, .steps = 0, .begun = begun});
    nan.push_back(faulty.in_step_of(FaultKind::nan));
    faulty.at({.doing = "saving", .steps = begun, .begun = begun + 1});
    EXPECT_FALSE(faulty.in_step_of(FaultKind::nan));
  }
  EXPECT_THAT(done, testing::ElementsAre(2, 3, 3));
  faulty.at({.doing = kTraining, .steps = 1, .begun = 1});  // it went back
  EXPECT_FALSE(faulty.in_step_of(FaultKind::nan));
  EXPECT_THAT(done, testing::ElementsAre(2, 3, 3));
  EXPECT_THAT(nan, testing::ElementsAre(false, true, false, false));
  EXPECT_THAT(inner.begun, testing::ElementsAre(0, 1, 1, 2, 2, 3, 3, 4, 1));
}

}  // namespace
}  // namespace gradring::train
