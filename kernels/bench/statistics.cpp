// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/statistics.h"

#include <algorithm>
#include <numeric>

#include "kernels/runtime/error.h"

namespace gradring::kernels::bench {
namespace {

/// The smallest of the sorted values that `percent` of 100 do not exceed.
double nearest_rank(std::span<const double> sorted, std::size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

}  // namespace

Statistics statistics_of(std::vector<double> measurements) {
  check(!measurements.empty(), "there is nothing to be said about no measurements");
  std::ranges::sort(measurements);
  const std::size_t count = measurements.size();
  const double middle = measurements[count / 2];
  return {.count = count,
          .least = measurements.front(),
          .median = count % 2 ? middle : (measurements[count / 2 - 1] + middle) / 2,
          .p95 = nearest_rank(measurements, 95),
          .p99 = nearest_rank(measurements, 99),
          .most = measurements.back(),
          .mean = std::accumulate(measurements.begin(), measurements.end(), 0.0) / static_cast<double>(count)};
}

}  // namespace gradring::kernels::bench
