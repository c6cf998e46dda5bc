// SPDX-License-Identifier: Apache-2.0
#include "train/tensorboard/histogram.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace gradring::train::tensorboard {

Histogram histogram_of(std::span<const float> values) {
  Histogram histogram{.min = std::numeric_limits<double>::infinity(), .max = -std::numeric_limits<double>::infinity()};
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    histogram.min = std::min(histogram.min, value);
    histogram.max = std::max(histogram.max, value);
    histogram.count += 1;
    histogram.sum += value;
    histogram.sum_of_squares += value * value;
  }
  if (histogram.count == 0) return {};
  const double range = histogram.max - histogram.min;
  const int buckets = range > 0 ? kHistogramBuckets : 1;
  histogram.counts.resize(static_cast<std::size_t>(buckets));
  for (int i = 1; i < buckets; ++i) histogram.limits.push_back(histogram.min + range * i / buckets);
  histogram.limits.push_back(histogram.max);
  const double buckets_per_unit = range > 0 ? buckets / range : 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const auto bucket = static_cast<int>((value - histogram.min) * buckets_per_unit);
    histogram.counts[static_cast<std::size_t>(std::min(bucket, buckets - 1))] += 1;
  }
  return histogram;
}

}  // namespace gradring::train::tensorboard
