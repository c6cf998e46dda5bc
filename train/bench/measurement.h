// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gradring::train::bench {

/// What was measured: names and values, in the order in which tables show them. Two measurements of one key are of the
/// same work, so that files of two builds can be compared.
using MeasurementKey = std::vector<std::pair<std::string, std::string>>;

/// Repeated measurements of one quantity.
struct BenchMeasurement {
  MeasurementKey key;
  std::string unit = "us";
  std::vector<double> samples;    ///< in their order; one at least
  bool higher_is_better = false;  ///< as of a rate
};

/// The members of `settings`, then those of `more`.
inline MeasurementKey joined(MeasurementKey settings, const MeasurementKey& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

}  // namespace gradring::train::bench
