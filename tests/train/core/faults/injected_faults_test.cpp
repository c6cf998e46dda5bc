// SPDX-License-Identifier: Apache-2.0
#include "train/core/faults/injected_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gradring::train {
namespace {

using ::testing::ElementsAre;

/// Plans losses that keep the scale of the last pass.
class ScaleBackend final : public nn::Backend {
 public:
  class Loss final : public nn::LossPlan {
   public:
    explicit Loss(float& scale) : scale_(scale) {}
    std::size_t nodes() const override { return 1; }
    std::size_t workspace_bytes() const override { return 2; }
    std::string description() const override { return "loss"; }
    void enqueue(kernels::Stream&, const nn::LossPass& pass) override { scale_ = pass.scale; }

   private:
    float& scale_;
  };

  std::string_view name() const override { return "scale"; }
  std::unique_ptr<nn::Plan> plan(std::span<const nn::NodeSpec>) override { return nullptr; }
  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec&, const nn::NodeSpec*) override {
    return std::make_unique<Loss>(scale);
  }

  float scale = 0;
};

TEST(InjectedFaults, PerformsEachFaultOnceBeforeItsStep) {
  std::vector<std::int64_t> performed;
  InjectedFaults faults(
      parse_faults(
          "kill:rank=0,step=3;delay:rank=0,step=3,ms=1;nan:rank=0,step=2;kill:rank=0,step=9;kill:rank=1,step=1"),
      {.world_size = 2}, 0, [&](const PlannedFault& fault) { performed.push_back(fault.step); });
  std::vector<bool> nan;
  for (std::int64_t step = 1; step <= 4; ++step) {
    faults.before_step(step);
    nan.push_back(faults.nan_now());
    faults.after_step();
    EXPECT_FALSE(faults.nan_now());
  }
  EXPECT_THAT(performed, ElementsAre(2, 3, 3));
  faults.before_step(2);  // after a rollback
  EXPECT_FALSE(faults.nan_now());
  EXPECT_THAT(performed, ElementsAre(2, 3, 3));
  EXPECT_THAT(nan, ElementsAre(false, true, false, false));
}

TEST(InjectedFaults, ListsPlannedFaultsOfAllRanksAndThoseNotReached) {
  InjectedFaults faults(parse_faults("kill:rank=0,step=3;kill:rank=0,step=9;kill:rank=1,step=1"), {.world_size = 2}, 0,
                        [](const PlannedFault&) {});
  EXPECT_EQ(faults.remarks().size(), 3u);
  EXPECT_EQ(faults.closing_remarks().size(), 2u);
  faults.before_step(3);
  EXPECT_THAT(faults.closing_remarks(), ElementsAre(testing::HasSubstr("kill, rank 0 in step 9")));
}

TEST(InjectedFaults, WrapsTheBackendOnlyForNanFaultsOfThisRank) {
  ScaleBackend inner;
  InjectedFaults other(parse_faults("nan:rank=1,step=1;kill:rank=0,step=1"), {.world_size = 2}, 0,
                       [](const PlannedFault&) {});
  EXPECT_EQ(&other.backend(inner), &inner);

  InjectedFaults faults(parse_faults("nan:rank=0,step=2"), {.world_size = 2}, 0, [](const PlannedFault&) {});
  nn::Backend& backend = faults.backend(inner);
  ASSERT_NE(&backend, &inner);
  EXPECT_EQ(backend.name(), "scale");
  const auto loss = backend.plan_cross_entropy({}, nullptr);
  EXPECT_EQ(loss->nodes(), 1u);
  EXPECT_EQ(loss->workspace_bytes(), 2u);
  EXPECT_EQ(loss->description(), "loss");
}

}  // namespace
}  // namespace gradring::train
