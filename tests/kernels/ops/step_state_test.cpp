// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/step_state/step_state.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::step_state {
namespace {

using namespace gradring::tests;

std::array<std::byte, sizeof(StepState)> bits_of(const StepState& state) {
  return std::bit_cast<std::array<std::byte, sizeof(StepState)>>(state);
}

TEST(StepState, CountsAppliedStepsOnly) {
  for_each_variant(kernel_set().step_state, DType::f32, [&](const Variant& variant, Stream& stream) {
    StepState state{.applied_steps = 3, .non_finite = 0, .gradient_scale = 2, .learning_rate = 0.5f};
    variant.advance(stream, {&state, {}});
    variant.advance(stream, {&state, {}});
    finish(stream);
    EXPECT_EQ(state.applied_steps, 5);
    state.non_finite = 1;
    variant.advance(stream, {&state, {}});
    finish(stream);
    EXPECT_EQ(state.applied_steps, 5);
    EXPECT_EQ(state.skipped_steps, 1);
    EXPECT_EQ(state.non_finite, 1);
    EXPECT_EQ(state.gradient_scale, 2);
    EXPECT_EQ(state.learning_rate, 0.5f);
    EXPECT_EQ(state.loss_scale, 1);
    EXPECT_EQ(state.growth_tracker, 0);
  });
}

TEST(StepState, ReferenceCountsTheSame) {
  StepState state;
  reference_advance({&state, {}});
  EXPECT_EQ(state.applied_steps, 1);
  state.non_finite = 1;
  reference_advance({&state, {}});
  EXPECT_EQ(state.applied_steps, 1);
}

/// A step, and what the state must be behind it.
struct Row {
  std::int32_t non_finite;
  float loss_scale;
  std::int32_t growth_tracker, applied_steps, skipped_steps;
};

TEST(StepState, FollowsTheWrittenTable) {
  constexpr LossScalePolicy kPolicy = {.growth_factor = 4, .backoff_factor = 0.5f, .growth_interval = 3};
  constexpr Row kRows[] = {{0, 8, 1, 1, 0}, {0, 8, 2, 2, 0},  {1, 4, 0, 2, 1}, {1, 2, 0, 2, 2},
                           {0, 2, 1, 3, 2}, {0, 2, 2, 4, 2},  {0, 8, 0, 5, 2}, {0, 8, 1, 6, 2},
                           {0, 8, 2, 7, 2}, {0, 32, 0, 8, 2}, {1, 16, 0, 8, 3}};
  for_each_variant(kernel_set().step_state, DType::f32, [&](const Variant& variant, Stream& stream) {
    StepState state{.loss_scale = 8};
    for (const Row& row : kRows) {
      state.non_finite = row.non_finite;
      variant.advance(stream, {&state, kPolicy, true});
      finish(stream);
      EXPECT_EQ(state.loss_scale, row.loss_scale);
      EXPECT_EQ(state.growth_tracker, row.growth_tracker);
      EXPECT_EQ(state.applied_steps, row.applied_steps);
      EXPECT_EQ(state.skipped_steps, row.skipped_steps);
    }
  });
}

TEST(StepState, DoesNotGrowToInfinity) {
  for_each_variant(kernel_set().step_state, DType::f32, [&](const Variant& variant, Stream& stream) {
    StepState state{.loss_scale = 0x1p126f};
    for (float expected : {0x1p127f, 0x1p127f, 0x1p127f}) {
      variant.advance(stream, {&state, {.growth_interval = 1}, true});
      finish(stream);
      EXPECT_EQ(state.loss_scale, expected);
      EXPECT_EQ(state.growth_tracker, 0);
    }
  });
}

TEST(StepState, MatchesTheReferenceBitForBitOverRandomOverflows) {
  constexpr LossScalePolicy kPolicies[] = {{2, 0.5f, 5}, {1.7f, 0.3f, 2}, {1.001f, 0.999f, 1}};
  for (std::uint64_t seed = 1; const LossScalePolicy& policy : kPolicies) {
    const std::vector<double> draws = random_values(300, seed++, 0, 1);
    for_each_variant(kernel_set().step_state, DType::f32, [&](const Variant& variant, Stream& stream) {
      StepState expected{.loss_scale = 0x1p16f};
      StepState actual = expected;
      for (double draw : draws) {
        actual.non_finite = expected.non_finite = draw < 0.2;
        const float rate = 1, sum = static_cast<float>(1e12 * draw);
        reference_prepare({&expected, &rate, 1, &sum, 3});
        reference_advance({&expected, policy, true});
        variant.prepare(stream, {&actual, &rate, 1, &sum, 3});
        variant.advance(stream, {&actual, policy, true});
        finish(stream);
        ASSERT_EQ(bits_of(actual), bits_of(expected));
      }
      EXPECT_EQ(actual.applied_steps + actual.skipped_steps, 300);
    });
  }
}

TEST(StepState, TakesALearningRateForEachGroup) {
  constexpr float kRates[] = {0.5f, 0.25f, 3, 4, 6, 7};
  const auto expect_rates_of = [&](const auto& prepare) {
    StepState state{.applied_steps = 1};
    std::array<float, 3> rates{};
    prepare(PrepareArgs{.state = &state, .learning_rates = kRates, .count = 2, .groups = 3, .rates = rates.data()});
    EXPECT_EQ(state.learning_rate, 0.25f);
    EXPECT_EQ(rates, (std::array{0.25f, 4.0f, 7.0f}));
  };
  expect_rates_of(reference_prepare);
  for_each_variant(kernel_set().step_state, DType::f32, [&](const Variant& variant, Stream& stream) {
    expect_rates_of([&](const PrepareArgs& args) {
      variant.prepare(stream, args);
      finish(stream);
    });
  });
  StepState state;
  EXPECT_THROW(check_args(PrepareArgs{.state = &state, .learning_rates = kRates, .count = 2, .groups = 2}),
               InvalidArgument);
}

TEST(StepState, TakesTheLearningRateOfTheAppliedSteps) {
  constexpr float kRates[] = {0.5f, 0.25f, 0.125f};
  for_each_variant(kernel_set().step_state, DType::f32, [&](const Variant& variant, Stream& stream) {
    StepState state;
    const std::vector<std::pair<std::int32_t, float>> rows = {
        {0, 0.5f}, {1, 0.25f}, {0, 0.25f}, {0, 0.125f}, {0, 0.125f}};
    for (const auto& [non_finite, rate] : rows) {
      state.non_finite = non_finite;
      variant.prepare(stream, {&state, kRates, 3});
      variant.advance(stream, {&state, {}});
      finish(stream);
      EXPECT_EQ(state.learning_rate, rate) << "after " << state.applied_steps;
    }
  });
}

TEST(StepState, UndoesTheLossScale) {
  const float rate = 1;
  for_each_variant(kernel_set().step_state, DType::f32, [&](const Variant& variant, Stream& stream) {
    for (const float scale : {1.0f, 3.0f, 0x1p16f, 0x1p127f}) {
      StepState state{.loss_scale = scale};
      variant.prepare(stream, {&state, &rate, 1});
      finish(stream);
      EXPECT_EQ(state.gradient_scale, static_cast<float>(1 / static_cast<double>(scale)));  // 2^-127 is no 0
      EXPECT_EQ(state.gradient_norm, 0);
    }
  });
}

TEST(StepState, ClipsAsPyTorchDoes) {
  const float rate = 1;
  for_each_variant(kernel_set().step_state, DType::f32, [&](const Variant& variant, Stream& stream) {
    // Gradients 3, -4, 12, 0 and 84 of norm 85; clip_grad_norm_ to 5 leaves 0.1764705926 of the 3.
    const float sum = 7225 * 16;  // times a loss scale of 4
    StepState state{.loss_scale = 4};
    variant.prepare(stream, {&state, &rate, 1, &sum, 5});
    finish(stream);
    EXPECT_EQ(state.gradient_norm, 85);
    EXPECT_FLOAT_EQ(state.gradient_scale * 4 * 3, 0.1764705926f);
    variant.prepare(stream, {&state, &rate, 1, &sum, 86});
    finish(stream);
    EXPECT_EQ(state.gradient_scale, 0.25f) << "nothing to clip";
    state.non_finite = 1;
    const float infinite = std::numeric_limits<float>::infinity();
    variant.prepare(stream, {&state, &rate, 1, &infinite, 5});
    finish(stream);
    EXPECT_EQ(state.gradient_scale, 0.25f) << "the step is skipped, and leaves no 0 behind";
    const float nothing = 0;
    state.non_finite = 0;
    variant.prepare(stream, {&state, &rate, 1, &nothing, 1e-9f});
    finish(stream);
    EXPECT_TRUE(std::isfinite(state.gradient_scale));
  });
}

TEST(StepState, RejectsPrepareWithoutRates) {
  StepState state;
  const float rate = 1, sum = 1;
  EXPECT_THROW(check_args(PrepareArgs{nullptr, &rate, 1}), InvalidArgument);
  EXPECT_THROW(check_args(PrepareArgs{&state, nullptr, 1}), InvalidArgument);
  EXPECT_THROW(check_args(PrepareArgs{&state, &rate, 0}), InvalidArgument);
  EXPECT_THROW(check_args(PrepareArgs{&state, &rate, 1, &sum, 0}), InvalidArgument);
  EXPECT_NO_THROW(check_args(PrepareArgs{&state, &rate, 1, &sum, 1e-30f}));
}

TEST(StepState, RejectsNullAndImpossiblePolicies) {
  StepState state;
  const auto accepts = [&](const LossScalePolicy& policy, bool dynamic = true) {
    try {
      check_args(AdvanceArgs{&state, policy, dynamic});
    } catch (const InvalidArgument&) {
      return false;
    }
    return true;
  };
  EXPECT_THROW(check_args(AdvanceArgs{}), InvalidArgument);
  EXPECT_TRUE(accepts({}));
  EXPECT_FALSE(accepts({.growth_factor = 1}));
  EXPECT_FALSE(accepts({.growth_factor = std::numeric_limits<float>::infinity()}));
  EXPECT_FALSE(accepts({.growth_factor = std::nanf("")}));
  EXPECT_FALSE(accepts({.backoff_factor = 0}));
  EXPECT_FALSE(accepts({.backoff_factor = 1}));
  EXPECT_FALSE(accepts({.growth_interval = 0}));
  EXPECT_TRUE(accepts({.growth_factor = 1, .backoff_factor = 1, .growth_interval = 0}, false));
}

}  // namespace
}  // namespace gradring::kernels::step_state
