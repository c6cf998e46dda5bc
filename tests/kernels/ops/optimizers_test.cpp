// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/ops/optimizers/optimizers.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels {
namespace {

using namespace gradring::tests;
using step_state::StepState;

constexpr std::size_t kSizes[] = {0, 1, 31, 33, 1023, 20001};

std::vector<float> random_floats(std::size_t elements, std::uint64_t seed) {
  const std::vector<double> values = random_values(elements, seed);
  return {values.begin(), values.end()};
}

/// What an optimizer works on: weights, and one array for each of its moments.
struct Arena {
  std::vector<float> weights;
  std::vector<std::vector<float>> moments;
  StepState state;
};

/// What the tests below need of an optimizer.
struct Adam {
  using Args = adam::Args;
  using Hyper = adam::Hyper;
  static constexpr float kLearningRate = 0.01f;
  static std::span<const adam::Variant> variants() { return kernel_set().adam; }
  static constexpr auto reference = adam::reference_run;
  static inline const std::vector<Hyper> hypers = {
      {},
      {.weight_decay = 0.1},
      {.weight_decay = 0.1, .decoupled = true},
      {.beta1 = 0, .beta2 = 0.9, .epsilon = 1e-3},
  };

  static std::vector<std::vector<float>> first_moments(std::size_t elements) {
    return {2, std::vector<float>(elements)};
  }

  static Args args_of(Arena& arena, const std::vector<float>& gradients, const Hyper& hyper) {
    return {.elements = arena.weights.size(),
            .weights = arena.weights.data(),
            .gradients = gradients.data(),
            .m = arena.moments[0].data(),
            .v = arena.moments[1].data(),
            .state = &arena.state,
            .hyper = hyper};
  }

  static void skip_one_moment(Args& args) { args.m += 1, args.v += 1; }

  /// PyTorch's formula, written down once more, one weight over all steps in double.
  static double by_hand(double w, const std::vector<double>& gradients, const Hyper& h) {
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

  /// Per step: a rounding of the weight (at most 2 here), and 16 of the step. A step is at most lr / sqrt(1 - beta2)
  /// times a little, but that large only after gradients of 0; twice lr here.
  static constexpr double kStepError = 0x1p-24 * (2 + 16 * 2 * kLearningRate);
};

struct Sgd {
  using Args = sgd::Args;
  using Hyper = sgd::Hyper;
  static constexpr float kLearningRate = 0.1f;
  static std::span<const sgd::Variant> variants() { return kernel_set().sgd; }
  static constexpr auto reference = sgd::reference_run;
  static inline const std::vector<Hyper> hypers = {
      {},
      {.weight_decay = 0.1},
      {.momentum = 0.9, .weight_decay = 0.1, .nesterov = true},
      {.momentum = 0.9},
      {.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1},
      {.momentum = 0.9, .weight_decay = 0.1, .nesterov = true, .decoupled = true},
  };

  /// Garbage: the first step must not read the momentum buffer.
  static std::vector<std::vector<float>> first_moments(std::size_t elements) {
    return {std::vector<float>(elements, std::nanf(""))};
  }

  static Args args_of(Arena& arena, const std::vector<float>& gradients, const Hyper& hyper) {
    return {.elements = arena.weights.size(),
            .weights = arena.weights.data(),
            .gradients = gradients.data(),
            .momentum_buffer = arena.moments[0].data(),
            .state = &arena.state,
            .hyper = hyper};
  }

  static void skip_one_moment(Args& args) { args.momentum_buffer += 1; }

  /// PyTorch's formula (decoupled: timm's), written down once more, one weight over all steps in double.
  static double by_hand(double w, const std::vector<double>& gradients, const Hyper& h) {
    double velocity = 0;
    for (std::size_t t = 0; t < gradients.size(); ++t) {
      double g = gradients[t] + (h.decoupled ? 0 : h.weight_decay * w);
      if (h.decoupled) w -= static_cast<double>(kLearningRate) * h.weight_decay * w;
      if (h.momentum != 0) {
        velocity = t == 0 ? g : h.momentum * velocity + (1 - h.dampening) * g;
        g = h.nesterov ? g + h.momentum * velocity : velocity;
      }
      w -= kLearningRate * g;
    }
    return w;
  }

  /// Per step 8 roundings of the largest term, below 4 here: momentum 0.9 sums up to ten gradients of at most 0.5.
  static constexpr double kStepError = 8 * 4 * 0x1p-24;
};

template <class Optimizer>
class OptimizerTest : public testing::Test {
 protected:
  using Args = typename Optimizer::Args;

  static Arena arena_of(std::size_t elements) {
    return {.weights = random_floats(elements, 1),
            .moments = Optimizer::first_moments(elements),
            .state = {.gradient_scale = 0.5f, .learning_rate = Optimizer::kLearningRate}};
  }

  static std::vector<float> gradients_of(std::size_t elements, int step) {
    return random_floats(elements, 100 + static_cast<std::uint64_t>(step));
  }

  /// Calls body(run) for the reference and for every variant; run(args) has finished when it returns.
  template <class Body>
  static void for_each_implementation(Body body) {
    body([](const Args& args) { Optimizer::reference(args); });
    for_each_variant(Optimizer::variants(), DType::f32, [&](const auto& variant, Stream& stream) {
      body([&](const Args& args) {
        variant.run(stream, args);
        finish(stream);
      });
    });
  }

  static void expect_refused(const typename Optimizer::Hyper& hyper, auto change) {
    Arena arena = arena_of(1);
    const std::vector<float> gradients(1);
    Args args = Optimizer::args_of(arena, gradients, hyper);
    EXPECT_NO_THROW(check_args(args));
    change(args);
    EXPECT_THROW(check_args(args), InvalidArgument);
  }
};

struct OptimizerName {
  template <class Optimizer>
  static std::string GetName(int) {
    return std::is_same_v<Optimizer, Adam> ? "Adam" : "Sgd";
  }
};
using Optimizers = testing::Types<Adam, Sgd>;
TYPED_TEST_SUITE(OptimizerTest, Optimizers, OptimizerName);
using AdamTest = OptimizerTest<Adam>;
using SgdTest = OptimizerTest<Sgd>;

TYPED_TEST(OptimizerTest, FollowsTheFormulaOverSeveralSteps) {
  constexpr int kSteps = 12;
  for (const auto& hyper : TypeParam::hypers)
    for (const std::size_t elements : kSizes)
      this->for_each_implementation([&](auto run) {
        Arena arena = this->arena_of(elements);
        const std::vector<float> start = arena.weights;
        std::vector<std::vector<double>> history(elements);
        for (int step = 0; step < kSteps; ++step) {
          const std::vector<float> gradients = this->gradients_of(elements, step);
          for (std::size_t i = 0; i < elements; ++i) history[i].push_back(0.5 * gradients[i]);
          run(TypeParam::args_of(arena, gradients, hyper));
          ++arena.state.applied_steps;
        }
        const std::vector<double> actual(arena.weights.begin(), arena.weights.end());
        std::vector<double> expected;
        for (std::size_t i = 0; i < elements; ++i) expected.push_back(TypeParam::by_hand(start[i], history[i], hyper));
        expect_close(actual, expected, [&](std::size_t) { return kSteps * TypeParam::kStepError; });
      });
}

TYPED_TEST(OptimizerTest, WritesTheRoundedWeightsToTheCopy) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const std::size_t elements : kSizes)
      this->for_each_implementation([&](auto run) {
        Arena plain = this->arena_of(elements);
        Arena arena = plain;
        TypedArray copy = TypedArray::unwritten(dtype, elements);
        const std::vector<float> gradients = this->gradients_of(elements, 0);
        run(TypeParam::args_of(plain, gradients, TypeParam::hypers[2]));
        auto args = TypeParam::args_of(arena, gradients, TypeParam::hypers[2]);
        args.copy_dtype = dtype;
        args.copy = copy.data();
        run(args);
        EXPECT_EQ(arena.weights, plain.weights);
        const std::vector<double> weights(arena.weights.begin(), arena.weights.end());
        expect_equal(copy.values(), TypedArray(dtype, weights).values());
      });
}

TYPED_TEST(OptimizerTest, EveryVariantGivesTheSameBitsAlignedOrNot) {
  const auto after_a_step = [&](const auto& variant, Stream& stream, std::size_t elements, const auto& hyper,
                                DType copy_dtype, bool aligned) {
    Arena arena = this->arena_of(elements);
    for (std::vector<float>& moment : arena.moments) moment.assign(elements, 0.25f);
    arena.state.applied_steps = 2;
    const std::vector<float> gradients = this->gradients_of(elements, 0);
    TypedArray copy(copy_dtype, std::vector<double>(elements, 3));
    const bool has_copy = copy_dtype != DType::f32;
    auto args = TypeParam::args_of(arena, gradients, hyper);
    if (has_copy) {
      args.copy_dtype = copy_dtype;
      args.copy = copy.data();
    }
    if (!aligned) {
      --args.elements;
      args.weights += 1;
      args.gradients += 1;
      TypeParam::skip_one_moment(args);
      if (has_copy) args.copy = copy.template as<std::uint16_t>() + 1;
    }
    variant.run(stream, args);
    finish(stream);
    return std::pair(arena, copy.values());
  };
  for (const auto& hyper : TypeParam::hypers)
    for (const std::size_t elements : {2, 4, 5, 33, 1023})
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (const bool aligned : {true, false})
          for_each_variant(TypeParam::variants(), DType::f32, [&](const auto& variant, Stream& stream) {
            const auto& first = TypeParam::variants().front();
            const auto [expected, expected_copy] = after_a_step(first, stream, elements, hyper, dtype, aligned);
            const auto [actual, copy] = after_a_step(variant, stream, elements, hyper, dtype, aligned);
            EXPECT_EQ(actual.weights, expected.weights);
            EXPECT_EQ(actual.moments, expected.moments);
            expect_equal(copy, expected_copy);
          });
}

TYPED_TEST(OptimizerTest, TakesTheRateOfTheseWeightsBeforeTheStates) {
  this->for_each_implementation([&](auto run) {
    Arena of_state = this->arena_of(33);
    Arena of_weights = of_state;
    of_weights.state.learning_rate = 5;
    const float rate = of_state.state.learning_rate;
    const std::vector<float> gradients = this->gradients_of(33, 0);
    run(TypeParam::args_of(of_state, gradients, TypeParam::hypers[2]));
    auto args = TypeParam::args_of(of_weights, gradients, TypeParam::hypers[2]);
    args.learning_rate = &rate;
    run(args);
    EXPECT_EQ(of_weights.weights, of_state.weights);
  });
}

TYPED_TEST(OptimizerTest, ChangesNothingInASkippedStep) {
  for_each_variant(TypeParam::variants(), DType::f32, [&](const auto& variant, Stream& stream) {
    Arena arena = this->arena_of(33);
    for (std::vector<float>& moment : arena.moments) moment.assign(33, 5);
    arena.state.non_finite = 1;
    const Arena before = arena;
    const std::vector<float> gradients(33, std::nanf(""));
    TypedArray copy(DType::f16, std::vector<double>(33, 3));
    auto args = TypeParam::args_of(arena, gradients, TypeParam::hypers[2]);
    args.copy_dtype = DType::f16;
    args.copy = copy.data();
    variant.run(stream, args);
    finish(stream);
    EXPECT_EQ(arena.weights, before.weights);
    EXPECT_EQ(arena.moments, before.moments);
    EXPECT_EQ(arena.state.applied_steps, 0);
    expect_equal(copy.values(), std::vector<double>(33, 3));
  });
}

TYPED_TEST(OptimizerTest, RejectsNullPointersAndBadCopies) {
  const auto refused = [&](auto change) { this->expect_refused(TypeParam::hypers[2], change); };
  float other = 0;
  refused([](auto& args) { args.weights = nullptr; });
  refused([](auto& args) { args.gradients = nullptr; });
  refused([](auto& args) { args.state = nullptr; });
  refused([&](auto& args) { args.copy = &other; });
  refused([](auto& args) {
    args.copy_dtype = DType::f16;
    args.copy = args.weights;
  });
  refused([](auto& args) { args.hyper.weight_decay = -1; });
}

TEST_F(AdamTest, MatchesTheReferenceInEveryArray) {
  for (const adam::Hyper& hyper : Adam::hypers)
    for_each_variant(kernel_set().adam, DType::f32, [&](const adam::Variant& variant, Stream& stream) {
      Arena expected = arena_of(1023);
      expected.state.applied_steps = 7;
      for (std::size_t i = 0; i < 1023; ++i) {
        expected.moments[0][i] = expected.weights[i] / 3;
        expected.moments[1][i] = expected.weights[i] * expected.weights[i];
      }
      Arena actual = expected;
      const std::vector<float> gradients = gradients_of(1023, 0);
      adam::reference_run(Adam::args_of(expected, gradients, hyper));
      variant.run(stream, Adam::args_of(actual, gradients, hyper));
      finish(stream);
      for (std::size_t i = 0; i < 1023; ++i) {
        EXPECT_NEAR(actual.moments[0][i], expected.moments[0][i], 4 * 0x1p-24);
        EXPECT_NEAR(actual.moments[1][i], expected.moments[1][i], 4 * 0x1p-24);
        EXPECT_NEAR(actual.weights[i], expected.weights[i], 4 * 0x1p-24);
      }
    });
}

TEST_F(AdamTest, RejectsImpossibleHyperparameters) {
  using adam::Args;
  expect_refused({}, [](Args& args) { args.v = nullptr; });
  expect_refused({}, [](Args& args) { args.hyper.beta1 = 1; });
  expect_refused({}, [](Args& args) { args.hyper.beta2 = -0.1; });
  expect_refused({}, [](Args& args) { args.hyper.epsilon = -1; });
}

TEST_F(SgdTest, NeedsNoBufferWithoutMomentum) {
  for_each_variant(kernel_set().sgd, DType::f32, [&](const sgd::Variant& variant, Stream& stream) {
    float weight = 1;
    const float gradient = 2;
    const StepState state{.gradient_scale = 0.5f, .learning_rate = 0.25f};
    variant.run(stream, {.elements = 1, .weights = &weight, .gradients = &gradient, .state = &state});
    finish(stream);
    EXPECT_EQ(weight, 0.75f);
  });
}

TEST_F(SgdTest, RejectsImpossibleHyperparameters) {
  using sgd::Args;
  const sgd::Hyper hyper{.momentum = 0.9};
  expect_refused(hyper, [](Args& args) { args.momentum_buffer = nullptr; });
  expect_refused(hyper, [](Args& args) { args.hyper.momentum = -1; });
  expect_refused(hyper, [](Args& args) { args.hyper = {.nesterov = true}; });
  expect_refused(hyper, [](Args& args) { args.hyper = {.momentum = 0.9, .dampening = 0.1, .nesterov = true}; });
}

}  // namespace
}  // namespace gradring::kernels
