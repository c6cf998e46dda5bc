// SPDX-License-Identifier: Apache-2.0
#include "kernels/ema/ema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/runtime/error.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::ema {
namespace {

using namespace gradring::tests;
using step_state::StepState;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};

std::vector<float> random_floats(std::size_t elements, std::uint64_t seed) {
  const std::vector<double> values = random_values(elements, seed);
  return {values.begin(), values.end()};
}

TEST(Ema, FollowsTheFormulaOverSeveralSteps) {
  for (const std::size_t elements : kSizes)
    for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
      std::vector<float> expected(elements, std::numeric_limits<float>::quiet_NaN()), actual = expected;
      for (std::int32_t step = 0; step < 4; ++step) {
        const std::vector<float> weights = random_floats(elements, 10 + static_cast<std::uint64_t>(step));
        const StepState state{.applied_steps = step};
        reference::run({elements, weights.data(), expected.data(), &state, 0.9});
        variant.run(stream, {elements, weights.data(), actual.data(), &state, 0.9});
        finish(stream);
        for (std::size_t i = 0; i < elements; ++i)
          ASSERT_NEAR(actual[i], expected[i], 4 * (step + 1) * 0x1p-24) << "step " << step << ", element " << i;
        if (step == 0) {
          EXPECT_EQ(actual, weights) << "the first average is the weights, whatever was there";
        }
      }
    });
}

TEST(Ema, TakesNoPartInASkippedStep) {
  const std::vector<float> weights(33, std::numeric_limits<float>::infinity());
  const std::vector<float> before = random_floats(33, 3);
  for (const std::int32_t applied : {0, 5})
    for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
      const StepState state{.applied_steps = applied, .non_finite = 1};
      std::vector<float> average = before;
      variant.run(stream, {33, weights.data(), average.data(), &state, 0.5});
      finish(stream);
      EXPECT_EQ(average, before);
      reference::run({33, weights.data(), average.data(), &state, 0.5});
      EXPECT_EQ(average, before);
    });
}

TEST(Ema, GivesTheSameBitsWhereverASliceBegins) {
  const std::size_t elements = 1023;
  const std::vector<float> weights = random_floats(elements, 1), before = random_floats(elements, 2);
  const StepState state{.applied_steps = 1};
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    std::vector<float> whole = before, parts = before;
    variant.run(stream, {elements, weights.data(), whole.data(), &state, 0.99});
    for (std::size_t begin = 0; begin < elements; begin += 341)
      variant.run(stream, {341, weights.data() + begin, parts.data() + begin, &state, 0.99});
    finish(stream);
    EXPECT_EQ(parts, whole);
  });
}

TEST(Ema, RefusesNullAndImpossibleDecays) {
  float number = 0;
  const StepState state;
  const auto refuses = [](const Args& args) { EXPECT_THROW(check_args(args), InvalidArgument); };
  EXPECT_NO_THROW(check_args({1, &number, &number + 1, &state, 0}));
  EXPECT_NO_THROW(check_args({0, nullptr, nullptr, &state, 0.5}));
  refuses({1, nullptr, &number, &state, 0.5});
  refuses({1, &number, nullptr, &state, 0.5});
  refuses({1, &number, &number, nullptr, 0.5});
  for (const double decay : {-0.1, 1.0, std::nan("")}) refuses({1, &number, &number + 1, &state, decay});
}

}  // namespace
}  // namespace gradring::kernels::ema
