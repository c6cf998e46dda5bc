// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/statistics.h"

#include <sys/utsname.h>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <numeric>

#include "kernels/host/host_device.h"
#include "kernels/runtime/commit.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels::bench {
namespace {

/// The smallest of the sorted values that `percent` of 100 do not exceed.
double nearest_rank(std::span<const double> sorted, std::size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

}  // namespace

Statistics statistics_of(std::vector<double> measurements) {
  check(!measurements.empty(), "no measurements to summarize");
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
