// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/sample_shape.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/data/support/message_of.h"
#include "train/checkpoint/error.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;

std::string refusal(const Json& about, const kernels::Shape& here) {
  return tests::message_of<CheckpointError>([&] { check_sample_shape(about, here, "run/checkpoints/step-20"); });
}

TEST(SampleShape, OfAnotherSizeIsRefused) {
  const Json about = {{kSampleShape, to_json(kernels::Shape{28, 28, 1})}};
  EXPECT_NO_THROW(check_sample_shape(about, {28, 28, 1}, "step-20"));
  EXPECT_EQ(
      refusal(about, {28, 29, 1}),
      "run/checkpoints/step-20: was trained on samples of [28,28,1], but the samples here are of [28,29,1]; use the "
      "data set that it was trained on, or another checkpoint");
}

TEST(SampleShape, ThatIsNoneIsRefused) {
  for (const Json& wrong : {Json("28"), Json(), Json::array(), Json(std::string(1'000'000, 'x'))})
    EXPECT_LT(refusal({{kSampleShape, wrong}}, {28, 28, 1}).size(), 300u);
}

TEST(SampleShape, ThatIsNotKnownIsNotCompared) {
  EXPECT_NO_THROW(check_sample_shape(Json::object(), {28, 28, 1}, "step-20"));
}

}  // namespace
}  // namespace gradring::train
