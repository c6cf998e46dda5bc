// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/dataset_facts.h"

namespace gradring::train {

/// What normalizes pixels, --normalize: (x - mean) / std of pixels x from 0 to 1.
struct NormalizeOption {
  enum class Kind : std::uint8_t {
    automatic,  ///< dataset for data of the user's own, else half
    half,       ///< 0.5 and 0.5
    dataset,    ///< those of the training set, for each channel
    values,     ///< `mean` and `std`
  };
  Kind kind = Kind::automatic;
  std::vector<float> mean{}, std{};  ///< one for each channel, or one for all

  bool operator==(const NormalizeOption&) const = default;
};

inline constexpr std::string_view kNormalizeValue = "auto|half|dataset|MEAN,...:STD,...";

/// Reads "auto", "half", "dataset" or "0.49,0.48,0.45:0.25,0.24,0.26".
///
/// Errors    UsageError that says what was expected.
NormalizeOption parse_normalize(std::string_view option, std::string_view text);
/// The inverse.
std::string show_normalize(const NormalizeOption& normalize);

/// Sets mean and std for `half` and for values; else they stay.
///
/// Errors    UsageError if their number is neither 1 nor that of the channels.
void set_normalization(data::DatasetFacts& facts, const NormalizeOption& normalize);

}  // namespace gradring::train
