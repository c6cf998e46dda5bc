// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/statistics.h"

#include <sys/utsname.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <numeric>
#include <utility>

#include "kernels/base/commit.h"
#include "kernels/base/error.h"
#include "kernels/host/host_device.h"

namespace gradring::kernels::bench {
namespace {

/// The smallest of the sorted values that `percent` of 100 do not exceed.
double nearest_rank(std::span<const double> sorted, std::size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

/// Of an even count, the mean of the middle two.
double median_of(std::span<const double> sorted) {
  const double middle = sorted[sorted.size() / 2];
  return sorted.size() % 2 ? middle : (sorted[sorted.size() / 2 - 1] + middle) / 2;
}

/// The median absolute deviation of a normal distribution is its standard deviation times the 0.75 quantile.
constexpr double kNormalQuantile = 0.6744897501960817;

double spread_of(std::span<const double> measurements, double median) {
  std::vector<double> deviations;
  for (const double value : measurements) deviations.push_back(std::abs(value - median));
  std::ranges::sort(deviations);
  return median_of(deviations) / kNormalQuantile;
}

}  // namespace

Statistics statistics_of(std::vector<double> measurements) {
  check(!measurements.empty(), "no measurements to summarize");
  std::vector<double> sorted = measurements;
  std::ranges::sort(sorted);
  const std::size_t count = sorted.size();
  const double median = median_of(sorted);
  return {.count = count,
          .least = sorted.front(),
          .median = median,
          .p95 = nearest_rank(sorted, 95),
          .p99 = nearest_rank(sorted, 99),
          .most = sorted.back(),
          .mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(count),
          .spread = spread_of(sorted, median),
          .samples = std::move(measurements)};
}

namespace {

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[sizeof "2026-11-20"] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", &local);
  return text;
}

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? std::string(names.sysname) + " " + names.release : "unknown system";
}

}  // namespace

Provenance provenance() {
  return {.machine = HostDevice().description() + ", " + kernel_release(), .date = today(), .commit = kCommit};
}

std::string to_string(const Provenance& provenance) {
  return provenance.machine + "; " + provenance.date + "; commit " + provenance.commit;
}

}  // namespace gradring::kernels::bench
