// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/ops/gather_batch/draws.h"

namespace gradring::kernels::gather_batch {

/// Weights of an image in a mixture, in 1 / kWholeWeight. A table has kLambdas quantiles of a distribution of them.
inline constexpr int kWholeWeight = 1 << 16;
inline constexpr int kLambdaBits = 12;
inline constexpr int kLambdas = 1 << kLambdaBits;

inline namespace GRADRING_KERNEL_COPY {

/// The other image that an image is mixed with, and how.
struct Mix {
  std::int64_t partner = 0;   ///< a visit (draws.h)
  int weight = kWholeWeight;  ///< of the sample itself in each pixel; mixup
  Box box;                    ///< where the partner is shown instead; cutmix

  constexpr bool shows_partner(int y, int x) const {
    return y >= box.top && y < box.top + box.height && x >= box.left && x < box.left + box.width;
  }
  /// Of two bytes, exactly.
  constexpr float of(int own, int other) const {
    return static_cast<float>(own * weight + other * (kWholeWeight - weight)) * (1.0f / kWholeWeight);
  }
  /// The weight of the partner's label.
  constexpr float label_weight(int height, int width) const {
    if (weight < kWholeWeight) return static_cast<float>(kWholeWeight - weight) * (1.0f / kWholeWeight);
    const std::int64_t pixels = std::int64_t{height} * width;
    return static_cast<float>(std::int64_t{box.height} * box.width) / static_cast<float>(pixels);
  }
};

/// Half a side of a box of cutmix: floor(side / 2 * sqrt(1 - lambda)).
constexpr int half_side(int side, int lambda) {
  const auto square = static_cast<std::uint64_t>(side) * static_cast<std::uint64_t>(side);
  return static_cast<int>(integer_sqrt(square * static_cast<std::uint64_t>(kWholeWeight - lambda) >> 18));
}

/// The mixture of a visit, if what.mixes(): a pure function, as draw_of.
///   words = philox(seed, counter) with purpose `mix`
///   word 0: partner, uniform in the `samples` visits of the epoch on all ranks; word 1: index in the table of lambdas (its upper bits),
///   and with both mixup and cutmix, cutmix if its lowest bit is set; words 2, 3: row and column of the centre of
///   cutmix's box
///
/// `visits`: those of the epoch; null: each of the `samples` of the training set once. `lambdas` are kLambdas quantiles of lambda for mixup, if it is on, followed by those for cutmix, if that is on.
///
/// Source    Zhang et al.: "mixup: beyond empirical risk minimization", 2018; Yun et al.: "CutMix", 2019;
///           torchvision.transforms.v2.MixUp and CutMix, which draw one lambda and box for a batch.
/// Example   tests/kernels/ops/mix_test.cpp
constexpr Mix mix_of(const Augmentation& what, std::uint64_t seed, std::int64_t epoch, std::int64_t visit,
                     std::int64_t samples, int height, int width, const std::int32_t* lambdas,
                     const std::int64_t* visits = nullptr) {
  const auto words = words_of(seed, DrawPurpose::mix, epoch, visit);
  Mix mix;
  mix.partner = below(words[0], samples);
  if (visits) mix.partner = visits[mix.partner];
  const bool both = what.mixup > 0 && what.cutmix > 0;
  const bool pastes = both ? (words[1] & 1) != 0 : what.cutmix > 0;
  const int lambda = lambdas[(words[1] >> (32 - kLambdaBits)) + (both && pastes ? kLambdas : 0)];
  if (!pastes) {
    mix.weight = lambda;
    return mix;
  }
  const auto clipped = [](int i, int size) { return i < 0 ? 0 : i > size ? size : i; };
  const int y = static_cast<int>(below(words[2], height)), x = static_cast<int>(below(words[3], width));
  const int half_height = half_side(height, lambda), half_width = half_side(width, lambda);
  mix.box.top = clipped(y - half_height, height);
  mix.box.left = clipped(x - half_width, width);
  mix.box.height = clipped(y + half_height, height) - mix.box.top;
  mix.box.width = clipped(x + half_width, width) - mix.box.left;
  return mix;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gather_batch
