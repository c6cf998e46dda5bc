// SPDX-License-Identifier: Apache-2.0
#include "data/loader/normalize.h"

#include <gmock/gmock.h>

#include <bit>
#include <numeric>
#include <random>
#include <span>

#include "kernels/base/error.h"

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

/// PyTorch's three operations, each rounded to f32: volatile makes every step be stored.
float expected(int value, float mean, float std) {
  volatile float result = static_cast<float>(value);
  result = result / 255.0f;
  result = result - mean;
  result = result / std;
  return result;
}

struct MeanAndStd {
  float mean, std;
};

/// Of MNIST, Fashion-MNIST, CIFAR-10 and ImageNet; round ones; and two that vector arithmetic cannot do exactly.
constexpr MeanAndStd kMeansAndStds[] = {{0.5f, 0.5f},       {0.1307f, 0.3081f}, {0.2860f, 0.3530f}, {0.4914f, 0.2470f},
                                        {0.4822f, 0.2435f}, {0.4465f, 0.2616f}, {0.485f, 0.229f},   {0.456f, 0.224f},
                                        {0.406f, 0.225f},   {0.0f, 1.0f},       {1.0f, 2.0f},       {-3.0f, 0.1f},
                                        {0.25f, 3e38f},     {0.75f, 1e-39f}};

TEST(Normalize, RoundsAfterEachOperationAsPyTorchDoes) {
  for (const auto& [mean, std] : kMeansAndStds) {
    const std::vector<float> out = normalized({.mean = {mean}, .std = {std}});
    for (int value = 0; value < 256; ++value)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(out[static_cast<std::size_t>(value)]),
                std::bit_cast<std::uint32_t>(expected(value, mean, std)))
          << value << " with mean " << mean << " and std " << std;
  }
}

TEST(Normalize, GivesTheSameBitsForManyNumbersAtRandom) {
  std::mt19937 random(20);
  std::uniform_real_distribution<float> any(0.01f, 2.0f);
  for (int i = 0; i < 500; ++i) {
    const MeanAndStd numbers{any(random), any(random)};
    const std::vector<float> out = normalized({.mean = {numbers.mean}, .std = {numbers.std}});
    for (int value = 0; value < 256; ++value)
      ASSERT_EQ(out[static_cast<std::size_t>(value)], expected(value, numbers.mean, numbers.std))
          << value << " with mean " << numbers.mean << " and std " << numbers.std;
  }
}

TEST(Normalize, KeepsChannelsApartInLongRows) {
  for (std::size_t channels : {1, 2, 3, 4, 5}) {
    NormalizeSpec spec{.mean = {}, .std = {}};
    for (std::size_t i = 0; i < channels; ++i) {
      spec.mean.push_back(kMeansAndStds[i].mean);
      spec.std.push_back(kMeansAndStds[i].std);
    }
    for (std::size_t pixels : {1, 31, 256, 784, 1024, 3001}) {
      std::vector<std::uint8_t> bytes(pixels * channels);
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 89 + i / 256);
      std::vector<float> out(bytes.size() + 1, -77.0f);
      Normalize(spec, static_cast<std::int64_t>(channels)).apply(bytes, std::span(out).first(bytes.size()));
      for (std::size_t i = 0; i < bytes.size(); ++i)
        ASSERT_EQ(out[i], expected(bytes[i], spec.mean[i % channels], spec.std[i % channels]))
            << i << " of " << pixels << " pixels with " << channels << " channels";
      EXPECT_EQ(out.back(), -77.0f);
    }
  }
}

TEST(Normalize, TakesOneMeanAndStdForAllChannels) {
  std::vector<float> out(6);
  Normalize({}, 3).apply(std::vector<std::uint8_t>{0, 255, 0, 255, 0, 255}, out);
  EXPECT_THAT(out, ::testing::ElementsAre(-1, 1, -1, 1, -1, 1));
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
  Normalize({.mean = {0.0f, 1.0f}, .std = {1.0f, 2.0f}}, 2).apply(std::vector<std::uint8_t>{255, 255, 0, 0}, out);
  EXPECT_THAT(out, ::testing::ElementsAre(1.0f, 0.0f, 0.0f, -0.5f));
}

TEST(Normalize, RejectsWhatCannotBe) {
  EXPECT_THROW(Normalize({.mean = {}, .std = {}}), InvalidArgument);
  EXPECT_THROW(Normalize({.mean = {0.5f}, .std = {0.5f, 0.5f}}), InvalidArgument);
  EXPECT_THROW(Normalize({.mean = {0.5f, 0.5f}, .std = {0.5f}}, 3), InvalidArgument);
  EXPECT_THROW(Normalize({}, 0), InvalidArgument);
  EXPECT_THROW(Normalize({.mean = {0.5f}, .std = {0.0f}}), InvalidArgument);
  std::vector<float> out(3);
  EXPECT_THROW(Normalize().apply(std::vector<std::uint8_t>(2), out), InvalidArgument);
  EXPECT_THROW(Normalize({}, 2).apply(std::vector<std::uint8_t>(3), out), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
