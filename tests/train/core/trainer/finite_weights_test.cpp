// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/parameter_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/train/records/checkpoint/tensors.h"
#include "train/core/trainer/nan_policy.h"

namespace gradring::train {
namespace {

using testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

TensorRecord floats(const std::string& name, const std::vector<float>& values) {
  return tensor(name, TensorType::f32, {static_cast<std::int64_t>(values.size())}, values);
}

template <class Act>
std::string divergence(Act act) {
  try {
    act();
  } catch (const DivergedError& error) {
    EXPECT_EQ(error.exit_code(), 5);
    return error.what();
  }
  return "";
}

TEST(FiniteWeights, NameTheFirstTensorAndTheNumberOfOthers) {
  const TensorRecord good = floats("a", {1, -2}), bad = floats("b", {kNaN, 1, -kInfinity}), other = floats("c", {kNaN});
  EXPECT_EQ(non_finite_weights(std::vector{good}), "");
  EXPECT_EQ(non_finite_weights(std::vector{good, bad}), "2 of the 3 values of 'b' are NaN or infinite");
  EXPECT_THAT(non_finite_weights(std::vector{bad, good, other}), HasSubstr(", and values of 1 more tensor"));
  EXPECT_EQ(non_finite_weights(std::vector{tensor("d", TensorType::f64, {2}, std::vector<double>{1e300, 1})}),
            "1 of the 2 values of 'd' is NaN or infinite")
      << "as f32";
  EXPECT_EQ(divergence([&] { check_finite_weights(std::vector{good}, "a.pt"); }), "");
  EXPECT_THAT(divergence([&] { check_finite_weights(std::vector{bad}, "a.pt"); }),
              HasSubstr("a.pt: 2 of the 3 values of 'b' are NaN or infinite; use"));
}

TEST(OptimizerValues, MayHaveInfiniteButNoNegativeSecondMoments) {
  const TensorRecord first = floats("exp_avg.a", {kInfinity}), infinite = floats("exp_avg_sq.a", {kInfinity, 0, 1});
  const TensorRecord negative = floats("exp_avg_sq.b", {-1, kNaN, 1});
  EXPECT_EQ(divergence([&] { check_optimizer_values(std::vector{infinite}, "o.pt"); }), "");
  EXPECT_THAT(divergence([&] {
                check_optimizer_values(std::vector{infinite, negative, first}, "o.pt");
              }),
              HasSubstr("o.pt: 2 of the 3 values of 'exp_avg_sq.b' are NaN or negative, and values of 1 more tensor;"));
}

TEST(FiniteOutputs, CountSamples) {
  const std::vector<float> good = {1, 2, 3, 4}, bad = {1, 2, kNaN, kInfinity, 5, kInfinity};
  EXPECT_EQ(divergence([&] { check_finite_outputs(good, 2, "a", "fp16"); }), "");
  EXPECT_THAT(divergence([&] { check_finite_outputs(bad, 2, "a", "fp16"); }),
              testing::AllOf(HasSubstr("a: the outputs for 2 of 3 samples are NaN or infinite in fp16"),
                             HasSubstr("--precision fp32")));
}

}  // namespace
}  // namespace gradring::train
