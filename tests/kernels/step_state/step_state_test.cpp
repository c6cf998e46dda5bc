// SPDX-License-Identifier: Apache-2.0
#include "kernels/step_state/step_state.h"

#include <gtest/gtest.h>

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
    EXPECT_EQ(state.non_finite, 1);
    EXPECT_EQ(state.gradient_scale, 2);
    EXPECT_EQ(state.learning_rate, 0.5f);
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

TEST(StepState, RefusesNull) { EXPECT_THROW(check_args({nullptr}), InvalidArgument); }

}  // namespace
}  // namespace gradring::kernels::step_state
