// SPDX-License-Identifier: Apache-2.0
#include "kernels/adam/adam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/runtime/error.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::adam {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 33, 1023, 20001};
constexpr float kLearningRate = 0.01f;

/// What an optimizer works on, in f32.
struct Arena {
  std::vector<float> weights, m, v;
  step_state::StepState state{.gradient_scale = 0.5f, .learning_rate = kLearningRate};

  explicit Arena(std::size_t elements) : m(elements), v(elements) {
    for (double w : random_values(elements, 1)) weights.push_back(static_cast<float>(w));
  }
};

std::vector<float> gradients_of(std::size_t elements, int step) {
  std::vector<float> gradients;
  for (double g : random_values(elements, 100 + static_cast<std::uint64_t>(step)))
    gradients.push_back(static_cast<float>(g));
  return gradients;
}

Args args_of(Arena& arena, const std::vector<float>& gradients, const Hyper& hyper) {
  return {arena.weights.size(),
          arena.weights.data(),
          gradients.data(),
          arena.m.data(),
          arena.v.data(),
          &arena.state,
          hyper};
}

/// PyTorch's formula, written down once more, one weight over all steps in double.
double by_hand(double w, const std::vector<double>& gradients, const Hyper& h) {
  double m = 0;
  double v = 0;
  for (std::size_t t = 1; t <= gradients.size(); ++t) {
    double g = gradients[t - 1];
    if (h.decoupled)
      w -= static_cast<double>(kLearningRate) * h.weight_decay * w;
    else
      g += h.weight_decay * w;
    m += (g - m) * (1 - h.beta1);
    v = v * h.beta2 + g * g * (1 - h.beta2);
    const double denominator = std::sqrt(v) / std::sqrt(1 - std::pow(h.beta2, t)) + h.epsilon;
    w -= kLearningRate / (1 - std::pow(h.beta1, t)) * (m / denominator);
  }
  return w;
}

const Hyper kHypers[] = {
    {},
    {.weight_decay = 0.1},
    {.weight_decay = 0.1, .decoupled = true},
    {.beta1 = 0, .beta2 = 0.9, .epsilon = 1e-3},
};

TEST(Adam, FollowsTheFormulaOverSeveralSteps) {
  constexpr int kSteps = 12;
  for (const Hyper& hyper : kHypers)
    for (std::size_t elements : kSizes)
      for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
        Arena arena(elements);
        const std::vector<float> start = arena.weights;
        std::vector<std::vector<double>> history(elements);
        for (int step = 0; step < kSteps; ++step) {
          const std::vector<float> gradients = gradients_of(elements, step);
          for (std::size_t i = 0; i < elements; ++i) history[i].push_back(0.5 * gradients[i]);
          variant.run(stream, args_of(arena, gradients, hyper));
          finish(stream);
          ++arena.state.applied_steps;
        }
        std::vector<double> actual(arena.weights.begin(), arena.weights.end());
        std::vector<double> expected;
        for (std::size_t i = 0; i < elements; ++i) expected.push_back(by_hand(start[i], history[i], hyper));
        // Per step: a rounding of the weight (at most 2 here), and 16 of the step. A step is at most lr / sqrt(1 - beta2)
        // times a little, but that large only after gradients of 0; twice lr here.
        const double bound = kSteps * 0x1p-24 * (2 + 16 * 2 * kLearningRate);
        expect_close(actual, expected, [&](std::size_t) { return bound; });
      });
}

TEST(Adam, MatchesTheReferenceInEveryArray) {
  for (const Hyper& hyper : kHypers)
    for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
      Arena expected(1023);
      expected.state.applied_steps = 7;
      for (std::size_t i = 0; i < 1023; ++i) {
        expected.m[i] = expected.weights[i] / 3;
        expected.v[i] = expected.weights[i] * expected.weights[i];
      }
      Arena actual = expected;
      const std::vector<float> gradients = gradients_of(1023, 0);
      reference::run(args_of(expected, gradients, hyper));
      variant.run(stream, args_of(actual, gradients, hyper));
      finish(stream);
      for (std::size_t i = 0; i < 1023; ++i) {
        EXPECT_NEAR(actual.m[i], expected.m[i], 4 * 0x1p-24);
        EXPECT_NEAR(actual.v[i], expected.v[i], 4 * 0x1p-24);
        EXPECT_NEAR(actual.weights[i], expected.weights[i], 4 * 0x1p-24);
      }
    });
}

TEST(Adam, WritesTheRoundedWeightsBeside) {
  for (DType dtype : {DType::f16, DType::bf16})
    for (std::size_t elements : kSizes) {
      const auto expect_copy = [&](auto run) {
        Arena plain(elements);
        Arena arena(elements);
        TypedArray copy = TypedArray::unwritten(dtype, elements);
        const std::vector<float> gradients = gradients_of(elements, 0);
        run(args_of(plain, gradients, kHypers[2]));
        Args args = args_of(arena, gradients, kHypers[2]);
        args.copy_dtype = dtype;
        args.copy = copy.data();
        run(args);
        EXPECT_EQ(arena.weights, plain.weights);
        const std::vector<double> weights(arena.weights.begin(), arena.weights.end());
        expect_equal(copy.values(), TypedArray(dtype, weights).values());
      };
      expect_copy([](const Args& args) { reference::run(args); });
      for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
        expect_copy([&](const Args& args) {
          variant.run(stream, args);
          finish(stream);
        });
      });
    }
}

TEST(Adam, EveryVariantHasTheSameBitsAlignedOrNot) {
  const auto after_a_step = [](const Variant& variant, Stream& stream, std::size_t elements, const Hyper& hyper,
                               bool aligned) {
    Arena arena(elements);
    const std::vector<float> gradients = gradients_of(elements, 0);
    TypedArray copy(DType::bf16, std::vector<double>(elements, 3));
    Args args = args_of(arena, gradients, hyper);
    args.copy_dtype = DType::bf16;
    args.copy = copy.data();
    if (!aligned) {
      --args.elements;
      args.weights += 1;
      args.gradients += 1;
      args.m += 1;
      args.v += 1;
      args.copy = copy.as<std::uint16_t>() + 1;
    }
    variant.run(stream, args);
    finish(stream);
    return std::pair(arena, copy.values());
  };
  for (const Hyper& hyper : kHypers)
    for (std::size_t elements : {2, 4, 5, 33, 1023})
      for (bool aligned : {true, false})
        for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
          const auto [expected, expected_copy] = after_a_step(variants().front(), stream, elements, hyper, aligned);
          const auto [actual, copy] = after_a_step(variant, stream, elements, hyper, aligned);
          EXPECT_EQ(actual.weights, expected.weights);
          EXPECT_EQ(actual.m, expected.m);
          EXPECT_EQ(actual.v, expected.v);
          expect_equal(copy, expected_copy);
        });
}

TEST(Adam, ChangesNothingInASkippedStep) {
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    Arena arena(33);
    arena.state.non_finite = 1;
    const Arena before = arena;
    const std::vector<float> gradients(33, std::nanf(""));
    TypedArray copy(DType::f16, std::vector<double>(33, 3));
    Args args = args_of(arena, gradients, {.weight_decay = 0.1, .decoupled = true});
    args.copy_dtype = DType::f16;
    args.copy = copy.data();
    variant.run(stream, args);
    finish(stream);
    EXPECT_EQ(arena.weights, before.weights);
    expect_equal(copy.values(), std::vector<double>(33, 3));
    EXPECT_EQ(arena.m, before.m);
    EXPECT_EQ(arena.v, before.v);
    EXPECT_EQ(arena.state.applied_steps, 0);
  });
}

TEST(Adam, RefusesNullAndImpossibleHyperParameters) {
  Arena arena(1);
  const std::vector<float> gradients(1);
  float other = 0;
  const auto refuse = [&](auto change) {
    Args args = args_of(arena, gradients, {});
    EXPECT_NO_THROW(check_args(args));
    change(args);
    EXPECT_THROW(check_args(args), InvalidArgument);
  };
  refuse([](Args& args) { args.weights = nullptr; });
  refuse([](Args& args) { args.v = nullptr; });
  refuse([](Args& args) { args.state = nullptr; });
  refuse([&](Args& args) { args.copy = &other; });
  refuse([](Args& args) {
    args.copy_dtype = DType::f16;
    args.copy = args.weights;
  });
  refuse([](Args& args) { args.hyper.beta1 = 1; });
  refuse([](Args& args) { args.hyper.beta2 = -0.1; });
  refuse([](Args& args) { args.hyper.epsilon = -1; });
  refuse([](Args& args) { args.hyper.weight_decay = -1; });
}

}  // namespace
}  // namespace gradring::kernels::adam
