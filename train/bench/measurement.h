// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace gradring::train {

inline constexpr double kMicroseconds = 1e6;  ///< in a second

}  // namespace gradring::train

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

/// The value of a member; empty if the key has no such member.
inline std::string value_of(const MeasurementKey& key, const std::string& name) {
  const auto found = std::ranges::find(key, name, &MeasurementKey::value_type::first);
  return found == key.end() ? std::string() : found->second;
}

/// Names of the members of all keys of `rows`, each once, in order of appearance.
template <class Rows>
std::vector<std::string> key_names(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    for (const auto& [name, value] : row.key)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

}  // namespace gradring::train::bench
