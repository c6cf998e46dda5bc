// SPDX-License-Identifier: Apache-2.0
#include "kernels/sgd/sgd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "kernels/runtime/error.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::sgd {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 33, 1023, 20001};
constexpr float kLearningRate = 0.1f;

/// What an optimizer works on, in f32. The momentum buffer starts as garbage: the first step must not read it.
struct Arena {
  std::vector<float> weights, buffer;
  step_state::StepState state{.gradient_scale = 0.5f, .learning_rate = kLearningRate};

  explicit Arena(std::size_t elements) : buffer(elements, std::nanf("")) {
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
  return {arena.weights.size(), arena.weights.data(), gradients.data(), arena.buffer.data(), &arena.state, hyper};
}

/// PyTorch's formula, written down once more, one weight over all steps in double.
double by_hand(double w, const std::vector<double>& gradients, const Hyper& h) {
  double velocity = 0;
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    double g = gradients[t] + h.weight_decay * w;
    if (h.momentum != 0) {
      velocity = t == 0 ? g : h.momentum * velocity + (1 - h.dampening) * g;
      g = h.nesterov ? g + h.momentum * velocity : velocity;
    }
    w -= kLearningRate * g;
  }
  return w;
}

const Hyper kHypers[] = {
    {},
    {.weight_decay = 0.1},
    {.momentum = 0.9},
    {.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1},
    {.momentum = 0.9, .weight_decay = 0.1, .nesterov = true},
};

template <class Run>
void follow(const Hyper& hyper, std::size_t elements, Run run) {
  constexpr int kSteps = 12;
  Arena arena(elements);
  const std::vector<float> start = arena.weights;
  std::vector<std::vector<double>> history(elements);
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> gradients = gradients_of(elements, step);
    for (std::size_t i = 0; i < elements; ++i) history[i].push_back(0.5 * gradients[i]);
    run(args_of(arena, gradients, hyper));
    ++arena.state.applied_steps;
  }
  const std::vector<double> actual(arena.weights.begin(), arena.weights.end());
  std::vector<double> expected;
  for (std::size_t i = 0; i < elements; ++i) expected.push_back(by_hand(start[i], history[i], hyper));
  // Per step 8 roundings of the largest term, below 4 here: momentum 0.9 sums up to ten gradients of at most 0.5.
  expect_close(actual, expected, [&](std::size_t) { return kSteps * 8 * 4 * 0x1p-24; });
}

TEST(Sgd, FollowsTheFormulaOverSeveralSteps) {
  for (const Hyper& hyper : kHypers)
    for (std::size_t elements : kSizes) {
      follow(hyper, elements, [](const Args& args) { reference::run(args); });
      for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
        follow(hyper, elements, [&](const Args& args) {
          variant.run(stream, args);
          finish(stream);
        });
      });
    }
}

TEST(Sgd, NeedsNoBufferWithoutMomentum) {
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    float weight = 1;
    const float gradient = 2;
    const step_state::StepState state{.gradient_scale = 0.5f, .learning_rate = 0.25f};
    variant.run(stream, {1, &weight, &gradient, nullptr, &state, {}});
    finish(stream);
    EXPECT_EQ(weight, 0.75f);
  });
}

TEST(Sgd, WritesTheRoundedWeightsBeside) {
  for (DType dtype : {DType::f16, DType::bf16})
    for (std::size_t elements : kSizes) {
      const auto expect_copy = [&](auto run) {
        Arena plain(elements);
        Arena arena(elements);
        TypedArray copy = TypedArray::unwritten(dtype, elements);
        const std::vector<float> gradients = gradients_of(elements, 0);
        run(args_of(plain, gradients, kHypers[4]));
        Args args = args_of(arena, gradients, kHypers[4]);
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

TEST(Sgd, EveryVariantHasTheSameBitsAlignedOrNot) {
  const auto after_a_step = [](const Variant& variant, Stream& stream, std::size_t elements, const Hyper& hyper,
                               bool aligned) {
    Arena arena(elements);
    arena.buffer.assign(elements, 0.25f);
    arena.state.applied_steps = 2;
    const std::vector<float> gradients = gradients_of(elements, 0);
    TypedArray copy(DType::bf16, std::vector<double>(elements, 3));
    Args args = args_of(arena, gradients, hyper);
    args.copy_dtype = DType::bf16;
    args.copy = copy.data();
    if (!aligned) {
      --args.elements;
      args.weights += 1;
      args.gradients += 1;
      args.momentum_buffer += 1;
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
          EXPECT_EQ(actual.buffer, expected.buffer);
          expect_equal(copy, expected_copy);
        });
}

TEST(Sgd, ChangesNothingInASkippedStep) {
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    Arena arena(33);
    arena.buffer.assign(33, 5);
    arena.state.non_finite = 1;
    const Arena before = arena;
    const std::vector<float> gradients(33, std::nanf(""));
    TypedArray copy(DType::f16, std::vector<double>(33, 3));
    Args args = args_of(arena, gradients, {.momentum = 0.9, .weight_decay = 0.1});
    args.copy_dtype = DType::f16;
    args.copy = copy.data();
    variant.run(stream, args);
    finish(stream);
    EXPECT_EQ(arena.weights, before.weights);
    expect_equal(copy.values(), std::vector<double>(33, 3));
    EXPECT_EQ(arena.buffer, before.buffer);
  });
}

TEST(Sgd, RefusesNullAndImpossibleHyperParameters) {
  Arena arena(1);
  const std::vector<float> gradients(1);
  float other = 0;
  const auto refuse = [&](auto change) {
    Args args = args_of(arena, gradients, {.momentum = 0.9});
    EXPECT_NO_THROW(check_args(args));
    change(args);
    EXPECT_THROW(check_args(args), InvalidArgument);
  };
  refuse([](Args& args) { args.weights = nullptr; });
  refuse([](Args& args) { args.momentum_buffer = nullptr; });
  refuse([](Args& args) { args.state = nullptr; });
  refuse([&](Args& args) { args.copy = &other; });
  refuse([](Args& args) {
    args.copy_dtype = DType::f16;
    args.copy = args.weights;
  });
  refuse([](Args& args) { args.hyper.momentum = -1; });
  refuse([](Args& args) { args.hyper.weight_decay = -1; });
  refuse([](Args& args) { args.hyper = {.nesterov = true}; });
  refuse([](Args& args) { args.hyper = {.momentum = 0.9, .dampening = 0.1, .nesterov = true}; });
}

}  // namespace
}  // namespace gradring::kernels::sgd
