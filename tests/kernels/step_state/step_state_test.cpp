// SPDX-License-Identifier: Apache-2.0
#include "kernels/step_state/step_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/runtime/error.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::step_state {
namespace {

using namespace gradring::tests;

TEST(StepState, CountsAppliedStepsOnly) {
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    StepState state{.applied_steps = 3, .non_finite = 0, .gradient_scale = 2, .learning_rate = 0.5f};
    variant.advance(stream, {&state});
    variant.advance(stream, {&state});
    finish(stream);
    EXPECT_EQ(state.applied_steps, 5);
    state.non_finite = 1;
    variant.advance(stream, {&state});
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

TEST(StepState, ReferenceCountsAlike) {
  StepState state;
  reference::advance({&state});
  EXPECT_EQ(state.applied_steps, 1);
  state.non_finite = 1;
  reference::advance({&state});
  EXPECT_EQ(state.applied_steps, 1);
}

/// A step, and what the state must be behind it.
struct Row {
  std::int32_t non_finite;
  float loss_scale, gradient_scale;
  std::int32_t growth_tracker, applied_steps, skipped_steps;
};

TEST(StepState, FollowsTheWrittenTable) {
  constexpr LossScalePolicy kPolicy = {.growth_factor = 4, .backoff_factor = 0.5f, .growth_interval = 3};
  constexpr Row kRows[] = {
      {0, 8, 0.125f, 1, 1, 0}, {0, 8, 0.125f, 2, 2, 0},   {1, 4, 0.25f, 0, 2, 1},    {1, 2, 0.5f, 0, 2, 2},
      {0, 2, 0.5f, 1, 3, 2},   {0, 2, 0.5f, 2, 4, 2},     {0, 8, 0.125f, 0, 5, 2},   {0, 8, 0.125f, 1, 6, 2},
      {0, 8, 0.125f, 2, 7, 2}, {0, 32, 0x1p-5f, 0, 8, 2}, {1, 16, 0.0625f, 0, 8, 3},
  };
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    StepState state{.gradient_scale = 0.125f, .loss_scale = 8};
    for (const Row& row : kRows) {
      state.non_finite = row.non_finite;
      variant.advance(stream, {&state, kPolicy, true});
      finish(stream);
      EXPECT_EQ(state.loss_scale, row.loss_scale);
      EXPECT_EQ(state.gradient_scale, row.gradient_scale);
      EXPECT_EQ(state.growth_tracker, row.growth_tracker);
      EXPECT_EQ(state.applied_steps, row.applied_steps);
      EXPECT_EQ(state.skipped_steps, row.skipped_steps);
    }
  });
}

TEST(StepState, DoesNotGrowToInfinity) {
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    StepState state{.loss_scale = 0x1p126f};
    for (float expected : {0x1p127f, 0x1p127f, 0x1p127f}) {
      variant.advance(stream, {&state, {.growth_interval = 1}, true});
      finish(stream);
      EXPECT_EQ(state.loss_scale, expected);
      EXPECT_EQ(state.growth_tracker, 0);
    }
    EXPECT_EQ(state.gradient_scale, 0x1p-127f);  // a subnormal, not 0
  });
}

TEST(StepState, HasTheReferencesBitsOverRandomOverflows) {
  constexpr LossScalePolicy kPolicies[] = {{2, 0.5f, 5}, {1.7f, 0.3f, 2}, {1.001f, 0.999f, 1}};
  for (std::uint64_t seed = 1; const LossScalePolicy& policy : kPolicies) {
    const std::vector<double> draws = random_values(300, seed++, 0, 1);
    for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
      StepState expected{.gradient_scale = 0x1p-16f, .loss_scale = 0x1p16f};
      StepState actual = expected;
      for (double draw : draws) {
        actual.non_finite = expected.non_finite = draw < 0.2;
        reference::advance({&expected, policy, true});
        variant.advance(stream, {&actual, policy, true});
        finish(stream);
        ASSERT_EQ(std::memcmp(&actual, &expected, sizeof expected), 0);
      }
      EXPECT_EQ(actual.applied_steps + actual.skipped_steps, 300);
    });
  }
}

TEST(StepState, RefusesNullAndImpossiblePolicies) {
  StepState state;
  const auto accepts = [&](const LossScalePolicy& policy, bool dynamic = true) {
    try {
      check_args({&state, policy, dynamic});
    } catch (const InvalidArgument&) {
      return false;
    }
    return true;
  };
  EXPECT_THROW(check_args({}), InvalidArgument);
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
