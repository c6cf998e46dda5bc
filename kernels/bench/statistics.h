// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gradring::kernels::bench {

/// What repeated measurements of one thing say. Of two runs on a busy machine the medians differ least.
struct Statistics {
  std::size_t count = 0;
  double least = 0;
  double median = 0;  ///< of an even count, the mean of the middle two
  double p95 = 0;     ///< nearest rank: at least 95 of 100 measurements are no larger
  double p99 = 0;
  double most = 0;
  double mean = 0;
};

/// Errors    InvalidArgument if there are no measurements.
Statistics statistics_of(std::vector<double> measurements);

}  // namespace gradring::kernels::bench
