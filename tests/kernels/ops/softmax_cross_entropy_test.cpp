// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/cross_entropy/cross_entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::softmax_cross_entropy {
namespace {

using namespace gradring::tests;

struct Extents {
  std::int64_t rows, classes;
};
constexpr Extents kCases[] = {{0, 10}, {1, 1}, {31, 10}, {33, 2}, {64, 10}, {1023, 3}, {5, 1023}, {2, 10}};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

struct Results {
  TypedArray dlogits;
  float loss_sum = -1;
  std::int32_t correct = -1;
};

/// Logits in [-4, 4), labels, and the workspace that a call may use.
struct Case {
  DType dtype;
  std::int64_t rows, classes;
  TypedArray logits;
  std::vector<std::int32_t> labels;
  std::vector<float> workspace;
  float scale = 0.25f;
  std::optional<float> loss_scale;

  Case(const Extents& e, DType type)
      : dtype(type), rows(e.rows), classes(e.classes), logits(type, random_values(size(rows * classes), 1, -4, 4)) {
    for (double u : random_values(size(rows), 2, 0, static_cast<double>(classes)))
      labels.push_back(static_cast<int>(u));
    workspace.assign(workspace_bytes(rows) / sizeof(float), std::nanf(""));
  }

  /// Calls run(args) with everything filled in.
  template <class Run>
  Results call(Run run, bool gradient = true) {
    Results results{TypedArray::unwritten(dtype, logits.elements())};
    run(Args{dtype, rows, classes, logits.data(), labels.data(), scale, loss_scale ? &*loss_scale : nullptr,
             gradient ? results.dlogits.data() : nullptr, &results.loss_sum, &results.correct, workspace.data()});
    return results;
  }

  /// By the contract, with |m_r| and |x| at most 4; the last term is the sum over the rows, by 256 threads.
  double loss_bound() const {
    const double row = static_cast<double>(classes + 8) * (9 + std::log(static_cast<double>(classes)));
    const double sum = static_cast<double>(rows) / 256 + 258;
    return 0x1p-24 * static_cast<double>(rows) * (row + sum * (8 + std::log(static_cast<double>(classes))));
  }
};

TEST(SoftmaxCrossEntropy, StaysWithinItsBounds) {
  for (DType dtype : kTypes)
    for (const Extents& extents : kCases) {
      Case c(extents, dtype);
      const Results expected = c.call([](const Args& args) { reference_run(args); });
      const std::vector<double> truth = expected.dlogits.values();
      const double error = static_cast<double>(c.classes + 8) * 0x1p-23 * c.scale;
      for_each_variant(kernel_set().softmax_cross_entropy, dtype, [&](const Variant& variant, Stream& stream) {
        const Results actual = c.call([&](const Args& args) {
          variant.run(stream, args);
          finish(stream);
        });
        EXPECT_NEAR(actual.loss_sum, expected.loss_sum, c.loss_bound());
        EXPECT_EQ(actual.correct, expected.correct);
        expect_close(actual.dlogits.values(), truth,
                     [&](std::size_t i) { return error + 2 * rounding(dtype, std::fabs(truth[i]) + error); });
      });
    }
}

TEST(SoftmaxCrossEntropy, WorksInPlaceAndWithoutGradient) {
  for (DType dtype : kTypes)
    for_each_variant(kernel_set().softmax_cross_entropy, dtype, [&](const Variant& variant, Stream& stream) {
      Case c({33, 10}, dtype);
      const Results apart = c.call([&](const Args& args) {
        variant.run(stream, args);
        finish(stream);
      });
      const Results without = c.call(
          [&](const Args& args) {
            variant.run(stream, args);
            finish(stream);
          },
          false);
      const Results in_place = c.call([&](Args args) {
        args.dlogits = c.logits.data();
        variant.run(stream, args);
        finish(stream);
      });
      EXPECT_EQ(without.loss_sum, apart.loss_sum);
      EXPECT_EQ(without.correct, apart.correct);
      EXPECT_EQ(in_place.loss_sum, apart.loss_sum);
      expect_equal(c.logits.values(), apart.dlogits.values());
    });
}

TEST(SoftmaxCrossEntropy, LossScaleMultipliesOnlyTheGradient) {
  const auto expect_scaled = [](Case& c, auto run) {
    const Results plain = c.call(run);
    c.loss_scale = 1024.0f;  // a power of two: every bit of the gradient stays
    const Results scaled = c.call(run);
    EXPECT_EQ(scaled.loss_sum, plain.loss_sum);
    EXPECT_EQ(scaled.correct, plain.correct);
    std::vector<double> expected = plain.dlogits.values();
    for (double& value : expected) value *= 1024;
    expect_equal(scaled.dlogits.values(), expected);
  };
  for (DType dtype : {DType::f32, DType::bf16}) {
    Case at_reference({33, 10}, dtype);
    expect_scaled(at_reference, [](const Args& args) { reference_run(args); });
    for_each_variant(kernel_set().softmax_cross_entropy, dtype, [&](const Variant& variant, Stream& stream) {
      Case c({33, 10}, dtype);
      expect_scaled(c, [&](const Args& args) {
        variant.run(stream, args);
        finish(stream);
      });
    });
  }
}

TEST(SoftmaxCrossEntropy, LossScalePreservesSmallGradientsInF16) {
  for_each_variant(kernel_set().softmax_cross_entropy, DType::f16, [&](const Variant& variant, Stream& stream) {
    Case c({1, 3}, DType::f16);
    c.scale = 0x1p-28f;
    const auto largest = [&] {
      double most = 0;
      for (double value : c.call([&](const Args& args) {
                             variant.run(stream, args);
                             finish(stream);
                           }).dlogits.values())
        most = std::max(most, std::fabs(value));
      return most;
    };
    EXPECT_EQ(largest(), 0);
    c.loss_scale = 0x1p16f;
    EXPECT_GT(largest(), 0x1p-15);
  });
}

TEST(SoftmaxCrossEntropy, StaysFiniteForHugeLogits) {
  for_each_variant(kernel_set().softmax_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
    Case c({2, 3}, DType::f32);
    c.logits = TypedArray(DType::f32, std::vector<double>{1e30, 0, -1e30, 88, 89, 90});
    c.labels = {0, 2};
    const Results actual = c.call([&](const Args& args) {
      variant.run(stream, args);
      finish(stream);
    });
    EXPECT_NEAR(actual.loss_sum, std::log1p(std::exp(-1.0) + std::exp(-2.0)), 1e-5);
    EXPECT_EQ(actual.correct, 2);
  });
}

TEST(SoftmaxCrossEntropy, TheFirstMaximumIsThePrediction) {
  const auto expect_first = [](const Results& results) { EXPECT_EQ(results.correct, 1); };
  Case c({2, 3}, DType::f32);
  c.logits = TypedArray(DType::f32, std::vector<double>{1, 2, 2, 1, 2, 2});
  c.labels = {1, 2};
  expect_first(c.call([](const Args& args) { reference_run(args); }));
  for_each_variant(kernel_set().softmax_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
    expect_first(c.call([&](const Args& args) {
      variant.run(stream, args);
      finish(stream);
    }));
  });
}

TEST(SoftmaxCrossEntropy, BadLabelsAndNaNAffectOnlyTheirRows) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Case c({4, 3}, DType::f32);
  c.logits = TypedArray(DType::f32, std::vector<double>{1, 2, 3, 1, 2, 3, 1, 2, 3, nan, 2, 3});
  c.labels = {-1, 3, 2, 2};
  const Results expected = c.call([](const Args& args) { reference_run(args); });
  EXPECT_TRUE(std::isnan(expected.loss_sum));
  EXPECT_EQ(expected.correct, 1);
  for_each_variant(kernel_set().softmax_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
    const Results actual = c.call([&](const Args& args) {
      variant.run(stream, args);
      finish(stream);
    });
    EXPECT_TRUE(std::isnan(actual.loss_sum));
    EXPECT_EQ(actual.correct, 1);
    expect_close(actual.dlogits.values(), expected.dlogits.values(), [](std::size_t) { return 1e-6; });
  });
}

TEST(SoftmaxCrossEntropy, ReferenceGradientMatchesFiniteDifferences) {
  Case c({4, 5}, DType::f32);
  const Results at = c.call([](const Args& args) { reference_run(args); });
  const auto loss = [&](std::span<const double> logits) {
    Case moved = c;
    moved.logits = TypedArray(DType::f32, logits);
    return c.scale * static_cast<double>(moved.call([](const Args& args) { reference_run(args); }).loss_sum);
  };
  expect_gradient(loss, c.logits.values(), at.dlogits.values(), 0x1p-6, 1e-4);
}

TEST(SoftmaxCrossEntropy, RejectsNullNoClassesAndOtherTypes) {
  Case c({2, 3}, DType::f32);
  const auto refuse = [&](auto change) {
    c.call([&](Args args) {
      EXPECT_NO_THROW(check_args(args));
      change(args);
      EXPECT_THROW(check_args(args), InvalidArgument);
    });
  };
  refuse([](Args& args) { args.rows = -1; });
  refuse([](Args& args) { args.classes = 0; });
  refuse([](Args& args) { args.labels = nullptr; });
  refuse([](Args& args) { args.loss_sum = nullptr; });
  refuse([](Args& args) { args.workspace = nullptr; });
  refuse([](Args& args) { args.dtype = DType::u8; });
}

}  // namespace
}  // namespace gradring::kernels::softmax_cross_entropy
