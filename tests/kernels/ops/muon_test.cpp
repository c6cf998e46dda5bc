// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/muon/muon.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::muon {
namespace {

using namespace gradring::tests;
using step_state::StepState;

constexpr std::size_t kSizes[] = {0, 1, 31, 33, 1023, 20001};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

std::vector<float> floats(std::size_t elements, std::uint64_t seed) {
  const std::vector<double> values = random_values(elements, seed);
  return {values.begin(), values.end()};
}

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

/// Calls body(run) with each variant's function; run(args) has finished when it returns.
template <class Args, class Body>
void for_each_run(void (*Variant::*run)(Stream&, const Args&), Body body) {
  for_each_variant(kernel_set().muon, DType::f32, [&](const Variant& variant, Stream& stream) {
    body([&](const Args& args) {
      (variant.*run)(stream, args);
      finish(stream);
    });
  });
}

TEST(Muon, AveragesGradients) {
  struct Case {
    double momentum;
    bool nesterov;
  };
  for (const auto& [momentum, nesterov] : {Case{0.9, true}, Case{0.9, false}, Case{0, false}})
    for (const std::size_t elements : kSizes)
      for_each_run<MomentumArgs>(&Variant::momentum, [&](auto run) {
        const std::vector<float> gradients = floats(elements, 1);
        const StepState state{.gradient_scale = 0.5f};
        const std::vector<float> before = floats(elements, 2);
        std::vector<float> buffer = before, update(elements, NAN);
        std::vector<float> expected_buffer = buffer, expected = update;
        MomentumArgs args{.elements = elements,
                          .gradients = gradients.data(),
                          .buffer = momentum > 0 ? buffer.data() : nullptr,
                          .update = update.data(),
                          .state = &state,
                          .momentum = momentum,
                          .nesterov = nesterov};
        run(args);
        args.buffer = expected_buffer.data();
        args.update = expected.data();
        reference_momentum(args);
        for (std::size_t i = 0; i < elements && i < 40; ++i) {
          const double g = 0.5 * gradients[i], b = momentum * before[i] + g;
          ASSERT_NEAR(expected[i], nesterov ? g + momentum * b : b, 1e-6);
        }
        expect_close(doubles(update), doubles(expected), [](std::size_t) { return 4 * 0x1p-24; });
        expect_close(doubles(buffer), doubles(expected_buffer), [](std::size_t) { return 4 * 0x1p-24; });
      });
}

TEST(Muon, NormalizesByTheNorm) {
  for (const DType dtype : kTypes)
    for (const std::size_t elements : kSizes)
      for (const float sum : {9.0f, 0.0f})
        for_each_run<NormalizeArgs>(&Variant::normalize, [&](auto run) {
          const std::vector<float> update = sum > 0 ? floats(elements, 1) : std::vector<float>(elements);
          TypedArray x = TypedArray::unwritten(dtype, elements), expected = x;
          run({dtype, elements, update.data(), &sum, x.data()});
          reference_normalize({dtype, elements, update.data(), &sum, expected.data()});
          for (std::size_t i = 0; i < elements && i < 40 && sum > 0; ++i)
            ASSERT_NEAR(expected.values()[i], update[i] / 3, rounding(dtype, 0.5));
          expect_close(x.values(), expected.values(), [&](std::size_t) { return 2 * rounding(dtype, 0.5); });
        });
}

TEST(Muon, NormalizesByANaNToNaN) {
  for_each_run<NormalizeArgs>(&Variant::normalize, [&](auto run) {
    const std::vector<float> update = {1, 2, 3};
    const float sum = std::nanf("");
    TypedArray x = TypedArray::unwritten(DType::f32, 3);
    run({DType::f32, 3, update.data(), &sum, x.data()});
    for (const double value : x.values()) EXPECT_TRUE(std::isnan(value));
  });
}

TEST(Muon, CombinesProducts) {
  for (const DType dtype : kTypes)
    for (const std::size_t elements : kSizes)
      for (const bool in_place : {true, false})
        for_each_run<CombineArgs>(&Variant::combine, [&](auto run) {
          const std::vector<float> products = floats(elements, 1);
          TypedArray x(dtype, random_values(elements, 2));
          TypedArray y = in_place ? x : TypedArray::unwritten(dtype, elements);
          TypedArray expected = y;
          run({dtype, elements, in_place ? y.data() : x.data(), products.data(), y.data(), 3.5f, -2});
          reference_combine({dtype, elements, x.data(), products.data(), expected.data(), 3.5f, -2});
          for (std::size_t i = 0; i < elements && i < 40; ++i)
            ASSERT_NEAR(expected.values()[i], 3.5 * x.values()[i] - 2 * static_cast<double>(products[i]),
                        rounding(dtype, 8));
          expect_close(y.values(), expected.values(), [&](std::size_t) { return 2 * rounding(dtype, 8); });
        });
}

TEST(Muon, AppliesTheDirection) {
  const float rate = 0.25f, sum = 16;
  for (const DType dtype : kTypes)
    for (const DType copy_dtype : kTypes)
      for (const std::size_t elements : kSizes)
        for (const bool normalizes : {true, false})
          for_each_run<ApplyArgs>(&Variant::apply, [&](auto run) {
            const StepState state{.learning_rate = 5};
            const TypedArray x(dtype, random_values(elements, 1));
            const std::vector<float> before = floats(elements, 2);
            std::vector<float> weights = before, expected = before;
            TypedArray copy = TypedArray::unwritten(copy_dtype, elements);
            ApplyArgs args{.dtype = dtype,
                           .elements = elements,
                           .weights = weights.data(),
                           .x = x.data(),
                           .state = &state,
                           .learning_rate = &rate,
                           .factor = 2,
                           .weight_decay = 0.5,
                           .weight_sum_of_squares = normalizes ? &sum : nullptr,
                           .norm = 3,
                           .copy_dtype = copy_dtype,
                           .copy = copy_dtype == DType::f32 ? nullptr : copy.data()};
            run(args);
            if (args.copy) expect_equal(copy.values(), TypedArray(copy_dtype, doubles(weights)).values());
            args.weights = expected.data();
            args.copy = nullptr;
            reference_apply(args);
            const double shrink = normalizes ? 0.75 : 0.875;
            for (std::size_t i = 0; i < elements && i < 40; ++i)
              ASSERT_NEAR(expected[i], shrink * before[i] - 0.5 * x.values()[i], 1e-6);
            expect_close(doubles(weights), doubles(expected), [](std::size_t) { return 4 * 0x1p-24; });
          });
}

TEST(Muon, ChangesNothingInASkippedStep) {
  const StepState state{.non_finite = 1};
  const float rate = 1, sum = NAN;
  for_each_variant(kernel_set().muon, DType::f32, [&](const Variant& variant, Stream& stream) {
    std::vector<float> buffer(33, 5), update(33, 6), weights(33, 7);
    const std::vector<float> nan(33, NAN);
    variant.momentum(stream, {33, nan.data(), buffer.data(), update.data(), &state, 0.9});
    variant.apply(stream, {.elements = 33,
                           .weights = weights.data(),
                           .x = nan.data(),
                           .state = &state,
                           .learning_rate = &rate,
                           .weight_sum_of_squares = &sum,
                           .norm = 1});
    finish(stream);
    EXPECT_EQ(buffer, std::vector<float>(33, 5));
    EXPECT_EQ(update, std::vector<float>(33, 6));
    EXPECT_EQ(weights, std::vector<float>(33, 7));
  });
}

TEST(Muon, RejectsBadArguments) {
  float a = 0, b = 0;
  const StepState state;
  EXPECT_THROW(check_args(MomentumArgs{1, nullptr, &a, &b, &state, 0.9}), InvalidArgument);
  EXPECT_THROW(check_args(MomentumArgs{1, &a, nullptr, &b, &state, 0.9}), InvalidArgument);
  EXPECT_THROW(check_args(MomentumArgs{1, &a, nullptr, &b, &state, -1}), InvalidArgument);
  EXPECT_NO_THROW(check_args(MomentumArgs{1, &a, nullptr, &b, &state}));
  EXPECT_THROW(check_args(NormalizeArgs{DType::i32, 1, &a, &b, &b}), InvalidArgument);
  EXPECT_THROW(check_args(NormalizeArgs{DType::f32, 1, &a, nullptr, &b}), InvalidArgument);
  EXPECT_THROW(check_args(CombineArgs{DType::f32, 1, &a, nullptr, &b}), InvalidArgument);
  EXPECT_THROW(check_args(ApplyArgs{.elements = 1, .weights = &a, .x = &b, .state = &state}), InvalidArgument);
  EXPECT_THROW(check_args(ApplyArgs{
                   .elements = 1, .weights = &a, .x = &b, .state = &state, .learning_rate = &b, .weight_decay = -1}),
               InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::muon
