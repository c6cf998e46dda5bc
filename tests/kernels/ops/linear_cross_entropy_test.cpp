// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/ops/kernel_set.h"
#include "tests/kernels/ops/linear_cross_entropy_case.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/partial_sums.h"
#include "tests/support/values.h"

namespace gradring::kernels::linear_cross_entropy {
namespace {

TEST(LinearCrossEntropy, StaysWithinItsBounds) {
  for (DType dtype : kTypes)
    for (const HeadExtents& extents : kCases) {
      HeadCase c(extents, dtype);
      const HeadResults expected = c.call(by_reference);
      for_each_variant(kernel_set().linear_cross_entropy, dtype, [&](const Variant& variant, Stream& stream) {
        SCOPED_TRACE("rows " + std::to_string(extents.rows) + ", in " + std::to_string(extents.in));
        expect_within_bounds(c, c.call(with(variant, stream)), expected);
      });
    }
}

TEST(LinearCrossEntropy, StaysWithinItsBoundsForSoftTargets) {
  for (DType dtype : kTypes)
    for (const HeadExtents& extents : kCases) {
      HeadCase c(extents, dtype);
      c.soften();
      const HeadResults expected = c.call(by_reference);
      for_each_variant(kernel_set().linear_cross_entropy, dtype, [&](const Variant& variant, Stream& stream) {
        SCOPED_TRACE("rows " + std::to_string(extents.rows) + ", in " + std::to_string(extents.in));
        expect_within_bounds(c, c.call(with(variant, stream)), expected);
      });
    }
}

TEST(LinearCrossEntropy, AccumulatesGradientsAndAppliesTheLossScale) {
  HeadCase plain({9, 17, 10}, DType::f32);
  const HeadResults bare = plain.call(by_reference);
  HeadCase c = plain;
  c.accumulate = true;
  c.loss_scale = 64.0f;
  const HeadResults expected = c.call(by_reference);
  EXPECT_EQ(expected.loss_sum, bare.loss_sum);
  for (std::size_t i = 0; i < bare.dw.size(); ++i) EXPECT_NEAR(expected.dw[i], 0.5f + 64 * bare.dw[i], 1e-5);
  for_each_variant(kernel_set().linear_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
    expect_within_bounds(c, c.call(with(variant, stream)), expected);
  });
  HeadCase nobody({0, 17, 10}, DType::f32);
  nobody.accumulate = true;
  for_each_variant(kernel_set().linear_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
    EXPECT_EQ(nobody.call(with(variant, stream)).dw, std::vector<float>(170, 0.5f));
  });
}

/// max(values, 0); NaN stays NaN.
TypedArray rectified(const TypedArray& array) {
  std::vector<double> values = array.values();
  for (double& value : values) value = value < 0 ? 0.0 : value;
  return TypedArray(array.dtype(), values);
}

TEST(LinearCrossEntropy, MasksTheGradientOfAReluAsReluBackwardDoes) {
  for (DType dtype : kTypes)
    for (const HeadExtents& extents : kCases) {
      HeadCase c(extents, dtype);
      c.h = rectified(c.h);
      const HeadResults unmasked = c.call(by_reference);
      c.h_is_relu = true;
      const HeadResults expected = c.call(by_reference);
      const std::vector<double> h = c.h.values(), masked = expected.dh.values(), all = unmasked.dh.values();
      for (std::size_t i = 0; i < h.size(); ++i) EXPECT_EQ(masked[i], h[i] > 0 ? all[i] : 0.0);
      for_each_variant(kernel_set().linear_cross_entropy, dtype, [&](const Variant& variant, Stream& stream) {
        SCOPED_TRACE("rows " + std::to_string(extents.rows) + ", in " + std::to_string(extents.in));
        const HeadResults actual = c.call(with(variant, stream));
        expect_within_bounds(c, actual, expected);
        const std::vector<double> dh = actual.dh.values();
        for (std::size_t i = 0; i < h.size(); ++i) EXPECT_TRUE(h[i] > 0 || dh[i] == 0) << i;
      });
    }
}

TEST(LinearCrossEntropy, LeavesPartialSumsAndFindsTheLossInOneLaunch) {
  for (DType dtype : kTypes)
    for (const HeadExtents& extents : kCases) {
      HeadCase c(extents, dtype);
      const HeadResults expected = c.call(by_reference);
      for_each_variant(kernel_set().linear_cross_entropy, dtype, [&](const Variant& variant, Stream& stream) {
        SCOPED_TRACE("rows " + std::to_string(extents.rows) + ", in " + std::to_string(extents.in));
        for (int call = 0; call < 2; ++call) {  // the second finds what the first leaves in `arrivals`
          PartialSums left;
          c.partial_sums = &left;
          const HeadResults actual = c.call([&](const Args& args) {
            variant.run(stream, args);
            finish(stream);
            add_up(left);
          });
          c.partial_sums = nullptr;
          EXPECT_EQ(left.size(), variant.name == "one_launch" && extents.rows > 0 ? 2u : 0u);
          EXPECT_EQ(c.arrivals, 0u);
          expect_within_bounds(c, actual, expected);
        }
      });
    }
}

TEST(LinearCrossEntropy, GivesOnlyTheLossWithoutGradientPointers) {
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
  for_each_variant(kernel_set().linear_cross_entropy, DType::f32,
                   [&](const Variant& variant, Stream& stream) { expect_loss_only(with(variant, stream)); });
}

TEST(LinearCrossEntropy, GivesTheSameBitsForAnyWorkers) {
  HeadCase c({65, 33, 10}, DType::f32);
  for (const Variant& variant : kernel_set().linear_cross_entropy) {
    std::vector<HeadResults> all;
    for_each_stream([&](Device&, Stream& stream) { all.push_back(c.call(with(variant, stream))); });
    for (const HeadResults& one : all) {
      EXPECT_EQ(one.dw, all.front().dw);
      EXPECT_EQ(one.db, all.front().db);
      EXPECT_EQ(one.loss_sum, all.front().loss_sum);
    }
  }
}

TEST(LinearCrossEntropy, InvalidLabelMakesItsRowAndTheWeightsNaN) {
  HeadCase c({3, 4, 3}, DType::f32);
  HeadCase soft = c;
  soft.labels = {0, 1, 2};
  soft.labels_b = {1, 1, 1};
  soft.weights_b = {0.5f, -0.5f, 0.5f};
  c.labels = {0, 3, 1};
  const auto expect_spoilt = [](const HeadResults& results) {
    const std::vector<double> dh = results.dh.values();
    for (std::size_t i = 0; i < dh.size(); ++i) EXPECT_EQ(std::isnan(dh[i]), i / 4 == 1);
    for (float dw : results.dw) EXPECT_TRUE(std::isnan(dw));
    EXPECT_TRUE(std::isnan(results.loss_sum));
  };
  for (HeadCase* const spoilt : {&c, &soft}) {
    expect_spoilt(spoilt->call(by_reference));
    for_each_variant(kernel_set().linear_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
      expect_spoilt(spoilt->call(with(variant, stream)));
    });
  }
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

TEST(LinearCrossEntropy, RejectsNullBadExtentsHalfAGradientAndOtherTypes) {
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
  refuse([&](Args& args) { args.soft.labels_b = c.labels.data(); });
  refuse([](Args& args) { args.soft.label_smoothing = 2; });
}

}  // namespace
}  // namespace gradring::kernels::linear_cross_entropy
