// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "data/datasets/dataset.h"

namespace gradring::data {

inline constexpr std::int64_t kDigitsTrainSamples = 10'000;
inline constexpr std::int64_t kDigitsTestSamples = 2'000;

/// `digits`: 28 x 28 grey images of handwritten-looking digits, drawn on the spot. No file, no licence, the same bytes
/// on every machine. Easy for a ConvNet, too hard for a linear model.
///
/// Cost      draws the whole split.
/// Example   tests/data/datasets/digits/digits_test.cpp
std::unique_ptr<Dataset> make_digits(Split split);

}  // namespace gradring::data
