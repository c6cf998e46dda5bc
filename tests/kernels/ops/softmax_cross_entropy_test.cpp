// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/cross_entropy/cross_entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
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
  std::vector<std::int32_t> labels_b;  // none: hard labels
  std::vector<float> weights_b;
  float label_smoothing = 0;
  float scale = 0.25f;
  std::optional<float> loss_scale;

  Case(const Extents& e, DType type)
      : dtype(type), rows(e.rows), classes(e.classes), logits(type, random_values(size(rows * classes), 1, -4, 4)) {
    for (double u : random_values(size(rows), 2, 0, static_cast<double>(classes)))
      labels.push_back(static_cast<int>(u));
    workspace.assign(workspace_bytes(rows) / sizeof(float), std::nanf(""));
  }

  /// Adds second labels with weights, of which some are 0 and 1.
  void soften() {
    for (double u : random_values(size(rows), 3, 0, static_cast<double>(classes)))
      labels_b.push_back(static_cast<std::int32_t>(u));
    for (double u : random_values(size(rows), 4, -0.2, 1.2))
      weights_b.push_back(static_cast<float>(std::clamp(u, 0.0, 1.0)));
  }

  SoftTargets soft() const {
    return {.labels_b = labels_b.empty() ? nullptr : labels_b.data(),
            .weights_b = weights_b.empty() ? nullptr : weights_b.data(),
            .label_smoothing = label_smoothing};
  }

  /// Calls run(args) with everything filled in.
  template <class Run>
  Results call(Run run, bool gradient = true) {
    Results results{TypedArray::unwritten(dtype, logits.elements())};
    run(Args{.dtype = dtype,
             .rows = rows,
             .classes = classes,
             .logits = logits.data(),
             .labels = labels.data(),
             .soft = soft(),
             .scale = scale,
             .loss_scale = loss_scale ? &*loss_scale : nullptr,
             .dlogits = gradient ? results.dlogits.data() : nullptr,
             .loss_sum = &results.loss_sum,
             .correct = &results.correct,
             .workspace = workspace.data()});
    return results;
  }

  /// By the contract, with |m_r| and |x| at most 4; the last term is the sum over the rows, by 256 threads.
  double loss_bound() const {
    const double terms = static_cast<double>(classes + 8) * (soft().used() ? 2 : 1);
    const double row = terms * (9 + std::log(static_cast<double>(classes)));
    const double sum = static_cast<double>(rows) / 256 + 258;
    return 0x1p-24 * static_cast<double>(rows) * (row + sum * (8 + std::log(static_cast<double>(classes))));
  }
};

/// Of every variant, against the reference.
void expect_within_bounds(Case& c) {
  const Results expected = c.call([](const Args& args) { reference_run(args); });
  const std::vector<double> truth = expected.dlogits.values();
  const double error = static_cast<double>(c.classes + 8) * 0x1p-23 * c.scale;
  for_each_variant(kernel_set().softmax_cross_entropy, c.dtype, [&](const Variant& variant, Stream& stream) {
    const Results actual = c.call([&](const Args& args) {
      variant.run(stream, args);
      finish(stream);
    });
    EXPECT_NEAR(actual.loss_sum, expected.loss_sum, c.loss_bound());
    EXPECT_EQ(actual.correct, expected.correct);
    expect_close(actual.dlogits.values(), truth,
                 [&](std::size_t i) { return error + 2 * rounding(c.dtype, std::fabs(truth[i]) + error); });
  });
}

TEST(SoftmaxCrossEntropy, StaysWithinItsBounds) {
  for (DType dtype : kTypes)
    for (const Extents& extents : kCases) {
      Case c(extents, dtype);
      expect_within_bounds(c);
    }
}

TEST(SoftmaxCrossEntropy, StaysWithinItsBoundsForSoftTargets) {
  for (DType dtype : kTypes)
    for (const Extents& extents : kCases) {
      Case smoothed(extents, dtype);
      smoothed.label_smoothing = 0.1f;
      expect_within_bounds(smoothed);
      Case mixed(extents, dtype);
      mixed.soften();
      expect_within_bounds(mixed);
      mixed.label_smoothing = 1;
      expect_within_bounds(mixed);
    }
}

// torch.nn.functional.cross_entropy(torch.tensor([[1., 2., 4.], [0.5, -1., 3.]], dtype=torch.float64), target, **options),
// with reduction "sum": of the labels [2, 0] and label_smoothing 0.3; and of those mixed with [1, 0] by 0.75 and 0.25.
TEST(SoftmaxCrossEntropy, SoftTargetsFollowPyTorch) {
  const auto expect_loss = [](Case& c, double loss, std::int32_t correct) {
    const auto expect = [&](const Results& results) {
      EXPECT_NEAR(results.loss_sum, loss, 2e-6);
      EXPECT_EQ(results.correct, correct);
    };
    expect(c.call([](const Args& args) { reference_run(args); }));
    for_each_variant(kernel_set().softmax_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
      expect(c.call([&](const Args& args) {
        variant.run(stream, args);
        finish(stream);
      }));
    });
  };
  Case c({2, 3}, DType::f32);
  c.logits = TypedArray(DType::f32, std::vector<double>{1, 2, 4, 0.5, -1, 3});
  c.labels = {2, 0};
  c.label_smoothing = 0.3f;
  expect_loss(c, 3.165520348970668, 1);
  c.labels_b = {1, 0};
  c.weights_b = {0.75f, 0.25f};
  expect_loss(c, 4.215520348970667, 0);  // the class of larger weight counts
  c.label_smoothing = 0;
  expect_loss(c, 4.265520348970668, 0);
}

TEST(SoftmaxCrossEntropy, SoftTargetsOfOneClassAreHard) {
  for_each_variant(kernel_set().softmax_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
    const auto run = [&](const Args& args) {
      variant.run(stream, args);
      finish(stream);
    };
    Case c({33, 10}, DType::f32);
    const Results hard = c.call(run);
    c.labels_b.assign(33, 3);
    c.weights_b.assign(33, 0.0f);
    const Results first = c.call(run);
    std::swap(c.labels, c.labels_b);
    c.weights_b.assign(33, 1.0f);
    for (const Results& soft : {first, c.call(run)}) {
      EXPECT_EQ(soft.loss_sum, hard.loss_sum);
      EXPECT_EQ(soft.correct, hard.correct);
      expect_equal(soft.dlogits.values(), hard.dlogits.values());
    }
  });
}

TEST(SoftmaxCrossEntropy, BadSoftTargetsAffectOnlyTheirRows) {
  Case c({5, 3}, DType::f32);
  c.labels = {0, 0, 0, 0, 0};
  c.labels_b = {1, 3, -1, 1, 1};
  c.weights_b = {0.5f, 0.5f, 0.5f, 1.5f, std::nanf("")};
  const auto expect_spoilt = [](const Results& results) {
    EXPECT_TRUE(std::isnan(results.loss_sum));
    const std::vector<double> dlogits = results.dlogits.values();
    for (std::size_t i = 0; i < dlogits.size(); ++i) EXPECT_EQ(std::isnan(dlogits[i]), i >= 3) << i;
  };
  expect_spoilt(c.call([](const Args& args) { reference_run(args); }));
  for_each_variant(kernel_set().softmax_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
    expect_spoilt(c.call([&](const Args& args) {
      variant.run(stream, args);
      finish(stream);
    }));
  });
}

TEST(SoftmaxCrossEntropy, ClassesOfWeightZeroMayHaveInfiniteLogits) {
  Case c({1, 3}, DType::f32);
  c.logits = TypedArray(DType::f32, std::vector<double>{0, 0, -std::numeric_limits<double>::infinity()});
  c.labels = {0};
  c.labels_b = {2};
  c.weights_b = {0.0f};
  EXPECT_NEAR(c.call([](const Args& args) { reference_run(args); }).loss_sum, std::log(2.0), 1e-6);
  for_each_variant(kernel_set().softmax_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
    const Results results = c.call([&](const Args& args) {
      variant.run(stream, args);
      finish(stream);
    });
    EXPECT_NEAR(results.loss_sum, std::log(2.0), 1e-6);
  });
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
  for (const bool soft : {false, true}) {
    Case c({4, 5}, DType::f32);
    if (soft) c.soften();
    c.label_smoothing = soft ? 0.2f : 0.0f;
    const Results at = c.call([](const Args& args) { reference_run(args); });
    const auto loss = [&](std::span<const double> logits) {
      Case moved = c;
      moved.logits = TypedArray(DType::f32, logits);
      return c.scale * static_cast<double>(moved.call([](const Args& args) { reference_run(args); }).loss_sum);
    };
    expect_gradient(loss, c.logits.values(), at.dlogits.values(), 0x1p-6, 1e-4);
  }
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
  refuse([&](Args& args) { args.soft.labels_b = c.labels.data(); });
  refuse([&](Args& args) { args.soft.weights_b = c.workspace.data(); });
  refuse([](Args& args) { args.soft.label_smoothing = -0.1f; });
  refuse([](Args& args) { args.soft.label_smoothing = 1.1f; });
  refuse([](Args& args) { args.soft.label_smoothing = std::nanf(""); });
}

}  // namespace
}  // namespace gradring::kernels::softmax_cross_entropy
