// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/runtime/error.h"
#include "tests/kernels/linear_cross_entropy/head_case.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"

namespace gradring::kernels::linear_cross_entropy {
namespace {

using namespace gradring::tests;

constexpr HeadExtents kCases[] = {{0, 5, 3},  {1, 1, 1},    {7, 9, 2},    {8, 8, 8},
                                  {9, 31, 9}, {33, 33, 10}, {65, 17, 32}, {16, 256, 10}};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

/// What HeadCase::call takes for a variant.
auto with(const Variant& variant, Stream& stream) {
  return [&](const Args& args) {
    variant.run(stream, args);
    finish(stream);
  };
}

void by_reference(const Args& args) { reference::run(args); }

void expect_within_bounds(const HeadCase& c, const HeadResults& actual, const HeadResults& expected) {
  const auto near = [&](const TypedArray& found, const TypedArray& truth, double error) {
    const std::vector<double> values = truth.values();
    expect_close(found.values(), values,
                 [&](std::size_t i) { return error + 2 * rounding(c.dtype, std::fabs(values[i]) + error); });
  };
  near(actual.logits, expected.logits, c.logit_error());
  near(actual.dh, expected.dh, c.dh_error());
  expect_close(doubles(actual.dw), doubles(expected.dw), [&](std::size_t) { return c.dw_error(); });
  expect_close(doubles(actual.db), doubles(expected.db), [&](std::size_t) { return c.dw_error(); });
  EXPECT_NEAR(actual.loss_sum, expected.loss_sum, c.loss_error());
  EXPECT_EQ(actual.correct, expected.correct);
}

TEST(LinearCrossEntropy, StaysWithinItsBounds) {
  for (DType dtype : kTypes)
    for (const HeadExtents& extents : kCases) {
      HeadCase c(extents, dtype);
      const HeadResults expected = c.call(by_reference);
      for_each_variant(variants(), dtype, [&](const Variant& variant, Stream& stream) {
        SCOPED_TRACE("rows " + std::to_string(extents.rows) + ", in " + std::to_string(extents.in));
        expect_within_bounds(c, c.call(with(variant, stream)), expected);
      });
    }
}

TEST(LinearCrossEntropy, AddsToWeightsThatAccumulateAndTakesTheLossScale) {
  HeadCase plain({9, 17, 10}, DType::f32);
  const HeadResults bare = plain.call(by_reference);
  HeadCase c = plain;
  c.accumulate = true;
  c.loss_scale = 64.0f;
  const HeadResults expected = c.call(by_reference);
  EXPECT_EQ(expected.loss_sum, bare.loss_sum);
  for (std::size_t i = 0; i < bare.dw.size(); ++i) EXPECT_NEAR(expected.dw[i], 0.5f + 64 * bare.dw[i], 1e-5);
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    expect_within_bounds(c, c.call(with(variant, stream)), expected);
  });
  HeadCase nobody({0, 17, 10}, DType::f32);
  nobody.accumulate = true;
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    EXPECT_EQ(nobody.call(with(variant, stream)).dw, std::vector<float>(170, 0.5f));
  });
}

TEST(LinearCrossEntropy, GivesTheLossAloneWhenNoGradientIsWanted) {
  const auto expect_loss_only = [](auto run) {
    HeadCase c({33, 17, 10}, DType::f32);
    const HeadResults with_gradient = c.call(run);
    const HeadResults without = c.call([&](Args args) {
      args.logits = args.dh = nullptr;
      args.dw = args.db = nullptr;
      run(args);
    });
    EXPECT_EQ(without.loss_sum, with_gradient.loss_sum);
    EXPECT_EQ(without.correct, with_gradient.correct);
    EXPECT_EQ(without.dw, std::vector<float>(170, 0.5f));
  };
  expect_loss_only(by_reference);
  for_each_variant(variants(), DType::f32,
                   [&](const Variant& variant, Stream& stream) { expect_loss_only(with(variant, stream)); });
}

TEST(LinearCrossEntropy, GivesTheSameBitsWhateverTheWorkers) {
  HeadCase c({65, 33, 10}, DType::f32);
  for (const Variant& variant : variants()) {
    std::vector<HeadResults> all;
    for_each_host_stream([&](Device&, Stream& stream) { all.push_back(c.call(with(variant, stream))); });
    for (const HeadResults& one : all) {
      EXPECT_EQ(one.dw, all.front().dw);
      EXPECT_EQ(one.db, all.front().db);
      EXPECT_EQ(one.loss_sum, all.front().loss_sum);
    }
  }
}

TEST(LinearCrossEntropy, ALabelThatIsNoClassSpoilsItsRowAndTheWeights) {
  HeadCase c({3, 4, 3}, DType::f32);
  c.labels = {0, 3, 1};
  const auto expect_spoilt = [](const HeadResults& results) {
    const std::vector<double> dh = results.dh.values();
    for (std::size_t i = 0; i < dh.size(); ++i) EXPECT_EQ(std::isnan(dh[i]), i / 4 == 1);
    for (float dw : results.dw) EXPECT_TRUE(std::isnan(dw));
    EXPECT_TRUE(std::isnan(results.loss_sum));
  };
  expect_spoilt(c.call(by_reference));
  for_each_variant(variants(), DType::f32,
                   [&](const Variant& variant, Stream& stream) { expect_spoilt(c.call(with(variant, stream))); });
}

TEST(LinearCrossEntropy, ReferenceGradientsMatchFiniteDifferences) {
  HeadCase c({4, 5, 3}, DType::f32);
  const HeadResults at = c.call(by_reference);
  const auto loss_with = [&](TypedArray HeadCase::*argument) {
    return [&c, argument](std::span<const double> values) {
      HeadCase moved = c;
      moved.*argument = TypedArray(DType::f32, values);
      return c.scale * static_cast<double>(moved.call(by_reference).loss_sum);
    };
  };
  expect_gradient(loss_with(&HeadCase::h), c.h.values(), at.dh.values(), 0x1p-6, 1e-4);
  expect_gradient(loss_with(&HeadCase::w), c.w.values(), doubles(at.dw), 0x1p-6, 1e-4);
  expect_gradient(loss_with(&HeadCase::b), c.b.values(), doubles(at.db), 0x1p-6, 1e-4);
}

TEST(LinearCrossEntropy, RefusesNullBadExtentsHalfAGradientAndOtherTypes) {
  HeadCase c({2, 3, 4}, DType::f32);
  const auto refuse = [&](auto change) {
    c.call([&](Args args) {
      EXPECT_NO_THROW(check_args(args));
      change(args);
      EXPECT_THROW(check_args(args), InvalidArgument);
    });
  };
  refuse([](Args& args) { args.dtype = DType::i32; });
  refuse([](Args& args) { args.rows = -1; });
  refuse([](Args& args) { args.in = 0; });
  refuse([](Args& args) { args.classes = 0; });
  refuse([](Args& args) { args.classes = kMostClasses + 1; });
  refuse([](Args& args) { args.h = nullptr; });
  refuse([](Args& args) { args.b = nullptr; });
  refuse([](Args& args) { args.labels = nullptr; });
  refuse([](Args& args) { args.dh = nullptr; });
  refuse([](Args& args) { args.db = nullptr; });
  refuse([](Args& args) { args.dw = args.db = nullptr; });
  refuse([](Args& args) { args.correct = nullptr; });
  refuse([](Args& args) { args.workspace = nullptr; });
  refuse([&](Args& args) { args.dh = c.h.data(); });
}

}  // namespace
}  // namespace gradring::kernels::linear_cross_entropy
