// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace gradring::train::tensorboard {

/// The distribution of finite values, as tensorflow.HistogramProto has it.
struct Histogram {
  double min = 0;
  double max = 0;
  double count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  std::vector<double> limits{};  ///< upper limit of each bucket; the lowest one begins at min
  std::vector<double> counts{};  ///< values of each bucket
};

/// Buckets of a histogram.
inline constexpr int kHistogramBuckets = 64;

/// Counts values in kHistogramBuckets buckets of equal width from the least value to the greatest, or in one bucket if
/// all are equal. Leaves out NaN and infinity. A value on a limit belongs to the bucket above it, and the greatest to
/// the last bucket, but for the rounding of its position.
///
/// Cost      reads the values twice.
Histogram histogram_of(std::span<const float> values);

}  // namespace gradring::train::tensorboard
