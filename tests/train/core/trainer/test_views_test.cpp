// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/test_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "tests/data/support/message_of.h"
#include "tests/support/safetensors.h"
#include "train/core/inference/inference.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr Tta kAll[] = {Tta::none, Tta::flip, Tta::airbench};

std::vector<float> seen(const TestView& view, const kernels::Shape& sample, const std::vector<float>& images) {
  std::vector<float> to(images.size());
  write_view(view, sample, images, to.data());
  return to;
}

TEST(TestViews, MirrorAndShiftWithReflectingPadding) {
  const kernels::Shape sample = {2, 3, 1};
  const std::vector<float> images = {1, 2, 3,  //
                                     4, 5, 6};
  EXPECT_THAT(seen({.mirrored = true}, sample, images), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(seen({.shift = 1}, sample, images), ElementsAre(5, 6, 5, 2, 3, 2));
  EXPECT_THAT(seen({.shift = -1}, sample, images), ElementsAre(5, 4, 5, 2, 1, 2));
  EXPECT_THAT(seen({.mirrored = true, .shift = 1}, sample, images), ElementsAre(5, 6, 5, 2, 3, 2));
  EXPECT_THAT(seen({.mirrored = true, .shift = -1}, sample, images), ElementsAre(5, 4, 5, 2, 1, 2));
}

TEST(TestViews, KeepImagesAndChannelsApart) {
  const std::vector<float> two_images = {1, 10, 2, 20, 3, 30, 4, 40};  // of one row, two pixels and two channels
  EXPECT_THAT(seen({.mirrored = true}, {1, 2, 2}, two_images), ElementsAre(2, 20, 1, 10, 4, 40, 3, 30));
}

TEST(TestViews, WeighOneInAllAndBeginWithTheImage) {
  for (const Tta tta : kAll) {
    double weight = 0;
    for (const TestView& view : test_views(tta)) weight += view.weight;
    EXPECT_EQ(weight, 1) << word_of(tta);
    EXPECT_TRUE(test_views(tta).front().is_identity());
  }
}

TEST(TestViews, CannotShiftAnImageOfOnePixel) {
  EXPECT_THAT(tests::message_of<InvalidArgument>([] {
                seen({.shift = 1}, {1, 3, 1}, {1, 2, 3});
              }),
              HasSubstr("--tta flip"));
}

/// A linear model, in which every pixel counts.
class TestViewsOfPyTorch : public ::testing::TestWithParam<std::int64_t> {
 protected:
  data::InMemoryDataset images() const {
    const auto labels = golden_.at("labels").as<std::int64_t>();
    return data::InMemoryDataset({.name = "golden",
                                  .shape = {5, 4, 3},
                                  .classes = 10,
                                  .pixels = golden_.at("images_u8").as<std::uint8_t>(),
                                  .labels = {labels.begin(), labels.end()}});
  }
  TensorRecord tensor(const std::string& name) const {
    return {{.name = "fc." + name, .shape = golden_.at(name).shape}, golden_.at(name).bytes};
  }

  const tests::StoredTensors golden_ = tests::read_golden("test_views");
  const Compute compute_ = make_compute({.device = "cpu"});
};

TEST_P(TestViewsOfPyTorch, HaveTheSameMeanLogitsLossAndHits) {
  Inference inference({.model = {"net.toml", "layers = [{ flatten = 'f' }, { linear = 'fc', out = 'classes' }]"},
                       .sample = {5, 4, 3},
                       .classes = 10,
                       .batch_size = GetParam()},
                      {tensor("weight"), tensor("bias")}, "golden", compute_);
  for (const Tta tta : kAll) {
    const auto result = inference.run(images(), tta);
    const auto of = [&](const char* what) { return golden_.at(std::string(word_of(tta)) + "." + what); };
    EXPECT_THAT(result.logits, Pointwise(FloatNear(1e-6f), of("logits").as<float>())) << word_of(tta);
    EXPECT_NEAR(result.evaluation.loss, of("loss").as<float>()[0], 1e-6) << word_of(tta);
    EXPECT_EQ(result.evaluation.correct, of("correct").as<std::int64_t>()[0]);
    EXPECT_EQ(result.evaluation.correct_in_top, of("correct_in_top").as<std::int64_t>()[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Batches, TestViewsOfPyTorch, ::testing::Values(1, 3, 7, 250));

}  // namespace
}  // namespace gradring::train
