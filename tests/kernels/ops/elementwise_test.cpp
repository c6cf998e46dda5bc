// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/ops/optimizers/optimizers.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::fill {
namespace {

using namespace gradring::tests;

TEST(Fill, SetsEveryElementOfEveryType) {
  const struct {
    DType dtype;
    double value;
  } cases[] = {{DType::f32, -1.5}, {DType::f16, 0.1},    {DType::bf16, 3e38},
               {DType::i32, -7},   {DType::i64, 0x1p40}, {DType::u8, 255}};
  for (const auto& c : cases)
    for (std::size_t elements : {0, 1, 31, 33, 1023, 20001})
      for_each_variant(kernel_set().fill, c.dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray expected = TypedArray::unwritten(c.dtype, elements);
        TypedArray actual = TypedArray::unwritten(c.dtype, elements);
        reference_run({.dtype = c.dtype, .y = expected.data(), .elements = elements, .value = c.value});
        variant.run(stream, {.dtype = c.dtype, .y = actual.data(), .elements = elements, .value = c.value});
        finish(stream);
        expect_equal(actual.values(), expected.values());
      });
}

TEST(Fill, RejectsValuesThatTheTypeCannotHold) {
  std::int64_t word = 0;
  EXPECT_THROW(reference_run({.dtype = DType::u8, .y = &word, .elements = 1, .value = 256}), InvalidArgument);
  EXPECT_THROW(reference_run({.dtype = DType::i32, .y = &word, .elements = 1, .value = 0.5}), InvalidArgument);
  EXPECT_THROW(reference_run({.dtype = DType::f32, .y = nullptr, .elements = 1, .value = 0}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::fill

namespace gradring::kernels::scale {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};

TEST(Scale, MatchesTheReferenceRoundedOnceAlsoInPlace) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (std::size_t elements : kSizes)
      for_each_variant(kernel_set().scale, dtype, [&](const Variant& variant, Stream& stream) {
        const float factor = -0.3f;
        const TypedArray x(dtype, random_values(elements, 1));
        TypedArray expected = TypedArray::unwritten(dtype, elements);
        TypedArray actual = expected;
        TypedArray in_place = x;
        reference_run({dtype, x.data(), expected.data(), elements, factor});
        variant.run(stream, {dtype, x.data(), actual.data(), elements, factor});
        variant.run(stream, {dtype, in_place.data(), in_place.data(), elements, factor});
        finish(stream);
        // The reference goes from double to f32 to the type, as the kernel does: the same bits.
        expect_equal(actual.values(), expected.values());
        expect_equal(in_place.values(), expected.values());
      });
}

TEST(Scale, RejectsPartialOverlapNullAndOtherTypes) {
  float data[4] = {};
  EXPECT_THROW(check_args({DType::f32, data + 1, data, 3}), InvalidArgument);
  EXPECT_THROW(check_args({DType::f32, data, nullptr, 3}), InvalidArgument);
  EXPECT_THROW(check_args({DType::u8, data, data, 3}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::scale

namespace gradring::kernels::accumulate {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};

TEST(Accumulate, MatchesTheReferenceRoundedOnce) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (std::size_t elements : kSizes)
      for_each_variant(kernel_set().accumulate, dtype, [&](const Variant& variant, Stream& stream) {
        const TypedArray x(dtype, random_values(elements, 1));
        TypedArray expected(dtype, random_values(elements, 2));
        TypedArray actual = expected;
        reference_run({dtype, x.data(), expected.data(), elements});
        variant.run(stream, {dtype, x.data(), actual.data(), elements});
        finish(stream);
        expect_equal(actual.values(), expected.values());
      });
}

/// Numbers that no double holds, and sums that wrap around.
TEST(Accumulate, AddsWholeNumbersExactly) {
  for_each_variant(kernel_set().accumulate, DType::i64, [&](const Variant& variant, Stream& stream) {
    for (std::size_t elements : kSizes) {
      std::vector<std::int64_t> x(elements), y(elements), expected(elements);
      for (std::size_t i = 0; i < elements; ++i) {
        x[i] = i % 5 == 0 ? std::numeric_limits<std::int64_t>::max() : -static_cast<std::int64_t>(i) * 1'000'000'007;
        y[i] = (std::int64_t{1} << 60) + static_cast<std::int64_t>(i);
        expected[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(x[i]) + static_cast<std::uint64_t>(y[i]));
      }
      std::vector<std::int64_t> reference = y;
      reference_run({DType::i64, x.data(), reference.data(), elements});
      EXPECT_EQ(reference, expected);
      variant.run(stream, {DType::i64, x.data(), y.data(), elements});
      finish(stream);
      EXPECT_EQ(y, expected);
    }
  });
}

TEST(Accumulate, AddsWholeNumbersOf32Bits) {
  for_each_variant(kernel_set().accumulate, DType::i32, [&](const Variant& variant, Stream& stream) {
    const std::vector<std::int32_t> x = {1, -5, std::numeric_limits<std::int32_t>::max()};
    std::vector<std::int32_t> y = {(1 << 24) + 1, 5, 1};
    const std::vector<std::int32_t> expected = {(1 << 24) + 2, 0, std::numeric_limits<std::int32_t>::min()};
    std::vector<std::int32_t> reference = y;
    reference_run({DType::i32, x.data(), reference.data(), 3});
    EXPECT_EQ(reference, expected);
    variant.run(stream, {DType::i32, x.data(), y.data(), 3});
    finish(stream);
    EXPECT_EQ(y, expected);
  });
}

TEST(Accumulate, DoublesInPlace) {
  for_each_variant(kernel_set().accumulate, DType::f32, [&](const Variant& variant, Stream& stream) {
    TypedArray y(DType::f32, std::vector<double>{1, -2, 3});
    variant.run(stream, {DType::f32, y.data(), y.data(), 3});
    finish(stream);
    expect_equal(y.values(), std::vector<double>{2, -4, 6});
  });
}

TEST(Accumulate, RejectsPartialOverlapNullAndOtherTypes) {
  float data[4] = {};
  EXPECT_THROW(check_args({DType::f32, data, data + 1, 3}), InvalidArgument);
  EXPECT_THROW(check_args({DType::f32, nullptr, data, 3}), InvalidArgument);
  EXPECT_THROW(check_args({DType::u8, data, data, 3}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::accumulate

namespace gradring::kernels::cast {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

TEST(Cast, GivesTheReferencesBitsBetweenAllTypes) {
  for (DType from : kTypes)
    for (DType to : kTypes)
      for (std::size_t elements : kSizes)
        for_each_variant(kernel_set().cast, from, [&](const Variant& variant, Stream& stream) {
          const TypedArray x(from, random_values(elements, 1, -100, 100));
          TypedArray expected = TypedArray::unwritten(to, elements);
          TypedArray actual = TypedArray::unwritten(to, elements);
          reference_run({.from = from, .to = to, .x = x.data(), .y = expected.data(), .elements = elements});
          variant.run(stream, {.from = from, .to = to, .x = x.data(), .y = actual.data(), .elements = elements});
          finish(stream);
          expect_equal(actual.values(), expected.values());
        });
}

TEST(Cast, RoundsToEvenOverflowsToInfinityKeepsNaN) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values = {1 + 0x1p-11, 1 + 0x3p-11, 65519, 65520, -1e9, 0x1p-24, 0x1p-26, -infinity, nan};
  const std::vector<double> rounded = {1, 1 + 0x1p-9, 65504, infinity, -infinity, 0x1p-24, 0, -infinity, nan};
  for_each_variant(kernel_set().cast, DType::f32, [&](const Variant& variant, Stream& stream) {
    const TypedArray x(DType::f32, values);
    TypedArray y = TypedArray::unwritten(DType::f16, values.size());
    variant.run(stream, {DType::f32, DType::f16, x.data(), y.data(), values.size()});
    finish(stream);
    expect_equal(y.values(), rounded);
  });
}

TEST(Cast, RejectsOverlapAndOtherTypes) {
  float data[4] = {};
  EXPECT_THROW(check_args({DType::f32, DType::f16, data, data, 4}), InvalidArgument);
  EXPECT_THROW(check_args({DType::u8, DType::f32, data, data + 2, 2}), InvalidArgument);
  EXPECT_THROW(check_args({DType::f32, DType::f32, nullptr, data, 2}), InvalidArgument);
  EXPECT_NO_THROW(check_args({}));
}

}  // namespace
}  // namespace gradring::kernels::cast

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
    for_each_variant(kernel_set().ema, DType::f32, [&](const Variant& variant, Stream& stream) {
      std::vector<float> expected(elements, std::numeric_limits<float>::quiet_NaN()), actual = expected;
      for (std::int32_t step = 0; step < 4; ++step) {
        const std::vector<float> weights = random_floats(elements, 10 + static_cast<std::uint64_t>(step));
        const StepState state{.applied_steps = step};
        reference_run({elements, weights.data(), expected.data(), &state, 0.9});
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
    for_each_variant(kernel_set().ema, DType::f32, [&](const Variant& variant, Stream& stream) {
      const StepState state{.applied_steps = applied, .non_finite = 1};
      std::vector<float> average = before;
      variant.run(stream, {33, weights.data(), average.data(), &state, 0.5});
      finish(stream);
      EXPECT_EQ(average, before);
      reference_run({33, weights.data(), average.data(), &state, 0.5});
      EXPECT_EQ(average, before);
    });
}

TEST(Ema, GivesTheSameBitsForAnySlicing) {
  const std::size_t elements = 1023;
  const std::vector<float> weights = random_floats(elements, 1), before = random_floats(elements, 2);
  const StepState state{.applied_steps = 1};
  for_each_variant(kernel_set().ema, DType::f32, [&](const Variant& variant, Stream& stream) {
    std::vector<float> whole = before, parts = before;
    variant.run(stream, {elements, weights.data(), whole.data(), &state, 0.99});
    for (std::size_t begin = 0; begin < elements; begin += 341)
      variant.run(stream, {341, weights.data() + begin, parts.data() + begin, &state, 0.99});
    finish(stream);
    EXPECT_EQ(parts, whole);
  });
}

TEST(Ema, RejectsNullAndImpossibleDecays) {
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
