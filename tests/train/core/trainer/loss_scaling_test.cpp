// SPDX-License-Identifier: Apache-2.0
// Overflow at chosen steps, on one rank: all skip, and the scale moves as GradScaler moves it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "nn/backend/decorators.h"
#include "tests/nn/support/program_rig.h"
#include "tests/train/support/rank_rig.h"
#include "train/core/trainer/from_config.h"

namespace gradring::tests {
namespace {

/// A loss whose gradient overflows f16 at chosen steps.
class OverflowingLoss final : public nn::LossPlanDecorator {
 public:
  OverflowingLoss(std::unique_ptr<nn::LossPlan> inner, std::set<int> steps)
      : LossPlanDecorator(std::move(inner)), steps_(std::move(steps)) {}
  void enqueue(kernels::Stream& stream, const nn::LossPass& pass) override {
    nn::LossPass made = pass;
    if (steps_.contains(step_++)) made.scale = std::numeric_limits<float>::max();
    LossPlanDecorator::enqueue(stream, made);
  }

 private:
  std::set<int> steps_;
  int step_ = 0;
};

class OverflowingBackend final : public nn::BackendDecorator {
 public:
  OverflowingBackend(std::unique_ptr<nn::Backend> inner, std::set<int> steps)
      : BackendDecorator(*inner), inner_(std::move(inner)), steps_(std::move(steps)) {}
  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec& spec,
                                                   const nn::NodeSpec* last) override {
    return std::make_unique<OverflowingLoss>(inner_->plan_cross_entropy(spec, last), steps_);
  }

 private:
  std::unique_ptr<nn::Backend> inner_;
  std::set<int> steps_;
};

struct Moment {
  float loss_scale = 0;
  bool skipped = false;
  bool operator==(const Moment&) const = default;
};

/// torch.amp.GradScaler, written out: what each step is made with.
std::vector<Moment> grad_scaler(float scale, int interval, const std::set<int>& overflows, int steps) {
  std::vector<Moment> moments;
  int tracker = 0;
  for (int step = 0; step < steps; ++step) {
    const bool overflow = overflows.contains(step);
    moments.push_back({scale, overflow});
    if (overflow) {
      scale *= 0.5f;
      tracker = 0;
    } else if (++tracker == interval) {
      if (std::isfinite(scale * 2)) scale *= 2;
      tracker = 0;
    }
  }
  return moments;
}

constexpr std::int64_t kBatch = 4;
constexpr int kSteps = 12;

/// What each step of two ranks was made with, in windows of `accumulate` passes; rank 1 alone overflows, in the passes
/// `overflows`. All ranks must say the same, and skipped steps must change no weight.
std::vector<Moment> trace(const std::set<int>& overflows, int interval, std::int64_t accumulate = 1) {
  std::vector<Moment> moments;
  const auto dataset = golden_images();
  run_ranks(2, [&](comm::ProcessGroup& group) {
    RankRig::Options options;
    options.max_batch = kBatch / accumulate;
    options.accumulates = accumulate > 1;
    options.precision = kernels::DType::f16;
    options.loss_scaling = {.dynamic = true, .initial = 1024, .policy = {.growth_interval = interval}};
    options.decorate = [&](std::unique_ptr<nn::Backend> inner) -> std::unique_ptr<nn::Backend> {
      const bool overflowing = group.rank() == 1;
      return std::make_unique<OverflowingBackend>(std::move(inner), overflowing ? overflows : std::set<int>{});
    };
    RankRig rig(group, *dataset, options);
    for (int step = 0; step < kSteps; ++step) {
      std::vector<std::int64_t> indices(kBatch);
      std::iota(indices.begin(), indices.end(), (step * 2 + group.rank()) * kBatch);
      const auto before = rig.weights();
      const train::StepResult result = rig.step(indices, 2 * kBatch);
      EXPECT_EQ(rig.weights() == before, result.skipped) << "step " << step;
      const auto all = group.all_gather_on_host(std::as_bytes(std::span(&result, 1)));
      const auto* results = reinterpret_cast<const train::StepResult*>(all.data());
      EXPECT_EQ(results[0].loss_scale, results[1].loss_scale);
      EXPECT_EQ(results[0].skipped, results[1].skipped);
      if (group.rank() == 0) moments.push_back({result.loss_scale, result.skipped});
    }
  });
  return moments;
}

TEST(LossScaling, FollowsGradScalerBitForBit) {
  for (const std::set<int>& overflows :
       {std::set<int>{}, {0}, {5}, {2, 3, 9}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}) {
    SCOPED_TRACE("overflows: " + testing::PrintToString(overflows));
    EXPECT_EQ(trace(overflows, 3), grad_scaler(1024, 3, overflows, kSteps));
  }
}

TEST(LossScaling, SkipsTheWholeWindowOfAPassThatOverflows) {
  // Passes 4 and 5 are step 2, 9 is half of step 4, 22 of step 11.
  EXPECT_EQ(trace({4, 5, 9, 22}, 3, 2), grad_scaler(1024, 3, {2, 4, 11}, kSteps));
}

TEST(LossScaling, IsForF16Alone) {
  train::TrainConfig config;
  config.loss_scale = 128;
  config.loss_scale_interval = 7;
  const auto f16 = train::loss_scaling_for(config, kernels::DType::f16);
  EXPECT_TRUE(f16.dynamic);
  EXPECT_EQ(f16.first(), 128);
  EXPECT_EQ(f16.policy.growth_interval, 7);
  for (const kernels::DType dtype : {kernels::DType::f32, kernels::DType::bf16}) {
    EXPECT_FALSE(train::loss_scaling_for(config, dtype).dynamic);
    EXPECT_EQ(train::loss_scaling_for(config, dtype).first(), 1);
  }
}

}  // namespace
}  // namespace gradring::tests
