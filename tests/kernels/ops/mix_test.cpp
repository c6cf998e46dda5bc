// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/gather_batch/mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace gradring::kernels::gather_batch {
namespace {

constexpr std::uint64_t kMixSeed = 42;
constexpr int kMixHeight = 20, kMixWidth = 32;
constexpr std::int64_t kMixSamples = 7;
constexpr int kMixDraws = 7000;

/// Of a uniform lambda.
std::vector<std::int32_t> uniform_lambdas() {
  std::vector<std::int32_t> lambdas;
  for (int i = 0; i < kLambdas; ++i) lambdas.push_back((2 * i + 1) * kWholeWeight / (2 * kLambdas));
  return lambdas;
}

Mix drawn_mix(const Augmentation& what, std::int64_t sample, const std::vector<std::int32_t>& lambdas,
              std::int64_t epoch = 3) {
  return mix_of(what, kMixSeed, epoch, sample, kMixSamples, kMixHeight, kMixWidth, lambdas.data());
}

TEST(Mix, PartnersAndLambdasAreUniform) {
  const auto lambdas = uniform_lambdas();
  std::vector<int> partners(kMixSamples), weights(8);
  for (std::int64_t sample = 0; sample < kMixDraws; ++sample) {
    const Mix drawn = drawn_mix({.mixup = 1000}, sample, lambdas);
    ++partners.at(static_cast<std::size_t>(drawn.partner));
    ++weights.at(static_cast<std::size_t>(drawn.weight * 8 / kWholeWeight));
    EXPECT_EQ(drawn.box.height, 0);
    EXPECT_FLOAT_EQ(drawn.label_weight(kMixHeight, kMixWidth), 1.0f - static_cast<float>(drawn.weight) / kWholeWeight);
  }
  for (const auto* counts : {&partners, &weights})
    for (int count : *counts) {
      const double expected = kMixDraws / static_cast<double>(counts->size());
      EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
    }
}

TEST(Mix, PartnersAreVisitsOfTheEpoch) {
  const auto lambdas = uniform_lambdas();
  std::vector<std::int64_t> visits;
  for (std::int64_t i = 0; i < kMixSamples; ++i) visits.push_back(visit_of(i % 2, i / 2));
  std::set<std::int64_t> partners;
  for (std::int64_t earlier = 0; earlier < 200; ++earlier)
    partners.insert(mix_of({.mixup = 1000}, kMixSeed, 3, visit_of(5, earlier), kMixSamples, kMixHeight, kMixWidth,
                           lambdas.data(), visits.data())
                        .partner);
  EXPECT_EQ(partners, std::set<std::int64_t>(visits.begin(), visits.end()));
}

/// CutMix.make_params of torchvision.transforms.v2, in f64, with the same random numbers.
TEST(Mix, BoxesAreTorchvisionsCutMix) {
  const auto lambdas = uniform_lambdas();
  for (std::int64_t sample = 0; sample < kMixDraws; ++sample) {
    const Mix drawn = drawn_mix({.cutmix = 1000}, sample, lambdas);
    const auto words = philox(kMixSeed, static_cast<std::uint64_t>(sample), 0x40000003ull << 32 | 3);
    EXPECT_EQ(drawn.partner, static_cast<std::int64_t>(words[0] * std::uint64_t{kMixSamples} >> 32));
    const double lambda = static_cast<double>(lambdas.at(words[1] >> 20)) / kWholeWeight;
    const int r_x = static_cast<int>(words[3] * std::uint64_t{kMixWidth} >> 32);
    const int r_y = static_cast<int>(words[2] * std::uint64_t{kMixHeight} >> 32);
    const double r = 0.5 * std::sqrt(1.0 - lambda);
    const int r_w_half = static_cast<int>(r * kMixWidth), r_h_half = static_cast<int>(r * kMixHeight);
    const int x1 = std::max(r_x - r_w_half, 0), x2 = std::min(r_x + r_w_half, kMixWidth);
    const int y1 = std::max(r_y - r_h_half, 0), y2 = std::min(r_y + r_h_half, kMixHeight);
    int seen = 0;
    for (int y = 0; y < kMixHeight; ++y)
      for (int x = 0; x < kMixWidth; ++x) {
        EXPECT_EQ(drawn.shows_partner(y, x), x1 <= x && x < x2 && y1 <= y && y < y2);
        seen += drawn.shows_partner(y, x);
      }
    const double lam_adjusted = 1.0 - static_cast<double>((x2 - x1) * (y2 - y1)) / (kMixWidth * kMixHeight);
    EXPECT_FLOAT_EQ(drawn.label_weight(kMixHeight, kMixWidth), static_cast<float>(1 - lam_adjusted));
    EXPECT_FLOAT_EQ(drawn.label_weight(kMixHeight, kMixWidth), static_cast<float>(seen) / (kMixWidth * kMixHeight));
    EXPECT_EQ(drawn.of(200, 100), 200) << "pixels of cutmix are of one image";
  }
}

TEST(Mix, OfBothIsOneOfThemInHalfOfTheImages) {
  std::vector<std::int32_t> lambdas = uniform_lambdas();
  const std::vector<std::int32_t> halves(kLambdas, kWholeWeight / 2);
  lambdas.insert(lambdas.end(), halves.begin(), halves.end());
  int pasted = 0;
  for (std::int64_t sample = 0; sample < kMixDraws; ++sample) {
    const Mix drawn = drawn_mix({.mixup = 1000, .cutmix = 1000}, sample, lambdas);
    const bool pastes = drawn.weight == kWholeWeight;
    pasted += pastes;
    const Mix alone =
        pastes ? drawn_mix({.cutmix = 1000}, sample, halves) : drawn_mix({.mixup = 1000}, sample, uniform_lambdas());
    EXPECT_EQ(drawn.partner, alone.partner);
    EXPECT_EQ(drawn.weight, alone.weight);
    EXPECT_EQ(drawn.box.width, alone.box.width);
  }
  EXPECT_NEAR(pasted, kMixDraws / 2, 5 * std::sqrt(kMixDraws / 4.0));
}

TEST(Mix, OfBytesIsExact) {
  for (int weight : {0, 1, 12345, kWholeWeight / 2, kWholeWeight - 1, kWholeWeight}) {
    Mix drawn;
    drawn.weight = weight;
    for (int a : {0, 1, 100, 255})
      for (int b : {0, 7, 254, 255}) {
        const double exact =
            (static_cast<double>(a) * weight + static_cast<double>(b) * (kWholeWeight - weight)) / kWholeWeight;
        EXPECT_EQ(static_cast<double>(drawn.of(a, b)), exact);
      }
  }
}

TEST(Mix, ChangesFromEpochToEpochAndLeavesTheOtherDraws) {
  const auto lambdas = uniform_lambdas();
  int same = 0;
  for (std::int64_t sample = 0; sample < 100; ++sample) {
    same +=
        drawn_mix({.mixup = 1000}, sample, lambdas, 3).weight == drawn_mix({.mixup = 1000}, sample, lambdas, 4).weight;
    const Augmentation crops{.flip = Flip::random, .crop = 4};
    Augmentation both = crops;
    both.cutmix = 1000;
    EXPECT_EQ(draw_of(crops, kMixSeed, 3, sample, kMixHeight, kMixWidth).shift_x,
              draw_of(both, kMixSeed, 3, sample, kMixHeight, kMixWidth).shift_x);
  }
  EXPECT_LT(same, 10);
}

}  // namespace
}  // namespace gradring::kernels::gather_batch
