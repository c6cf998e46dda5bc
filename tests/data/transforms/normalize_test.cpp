// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/normalize.h"

#include <gmock/gmock.h>

#include <numeric>
#include <utility>

#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

std::vector<std::uint8_t> all_values() {
  std::vector<std::uint8_t> values(256);
  std::iota(values.begin(), values.end(), std::uint8_t{0});
  return values;
}

std::vector<float> normalized(const NormalizeSpec& spec) {
  std::vector<float> out(256);
  Normalize(spec).apply(all_values(), out);
  return out;
}

TEST(Normalize, RoundsAfterEachOperationAsPyTorchDoes) {
  for (const auto& [mean, std] : {std::pair(0.5f, 0.5f), std::pair(0.1307f, 0.3081f)}) {
    const std::vector<float> out = normalized({.mean = {mean}, .std = {std}});
    for (int value = 0; value < 256; ++value) {
      volatile float result = static_cast<float>(value);  // volatile: every step is stored, hence rounded, as f32
      result = result / 255.0f;
      result = result - mean;
      result = result / std;
      EXPECT_EQ(out[static_cast<std::size_t>(value)], result) << value;
    }
  }
}

TEST(Normalize, DiffersInBitsFromOneMultiplyAdd) {
  // Equal in real numbers, not in floats: were it used, the test above would fail.
  const std::vector<float> out = normalized({.mean = {0.1307f}, .std = {0.3081f}});
  std::vector<float> multiplied(256);
  for (std::size_t value = 0; value < 256; ++value)
    multiplied[value] = static_cast<float>(value) * (1.0f / (255.0f * 0.3081f)) - 0.1307f / 0.3081f;
  EXPECT_NE(out, multiplied);
}

TEST(Normalize, MapsBlackToMinusOneAndWhiteToOneByDefault) {
  const std::vector<float> out = normalized({});
  EXPECT_EQ(out.front(), -1.0f);
  EXPECT_EQ(out.back(), 1.0f);
}

TEST(Normalize, TreatsEachChannelByItsOwnNumbers) {
  std::vector<float> out(4);
  Normalize({.mean = {0.0f, 1.0f}, .std = {1.0f, 2.0f}}).apply(std::vector<std::uint8_t>{255, 255, 0, 0}, out);
  EXPECT_THAT(out, ::testing::ElementsAre(1.0f, 0.0f, 0.0f, -0.5f));
}

TEST(Normalize, RefusesWhatCannotBe) {
  EXPECT_THROW(Normalize({.mean = {}, .std = {}}), InvalidArgument);
  EXPECT_THROW(Normalize({.mean = {0.5f}, .std = {0.5f, 0.5f}}), InvalidArgument);
  EXPECT_THROW(Normalize({.mean = {0.5f}, .std = {0.0f}}), InvalidArgument);
  std::vector<float> out(3);
  EXPECT_THROW(Normalize().apply(std::vector<std::uint8_t>(2), out), InvalidArgument);
  EXPECT_THROW(Normalize({.mean = {0, 0}, .std = {1, 1}}).apply(std::vector<std::uint8_t>(3), out), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
